import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Metrics, serveMetrics } from '@presign/service/metrics';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { eventually } from '../harness/eventually.ts';
import { scrape } from '../harness/scrape.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { UNKNOWN_KINDS } from '../harness/unknown-kinds.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

let upstream: Upstream;
let metrics: Metrics;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream();
  metrics = await serveMetrics('127.0.0.1', 0);
  const { meter } = metrics;
  const price = { input: 1_000_000, output: 1_000_000 };
  const entry = { base_url: upstream.url, pricing: { m: price, 'command-r-08-2024': price } };
  stack = await startStack({
    providers: { openai: entry, anthropic: entry, google: entry, cohere: entry },
    gateway: { meter },
    issuer: { meter },
  });
});
afterAll(async () => {
  await stack.close();
  await metrics.close();
  await upstream.close();
});

const METRIC = 'presign_unbounded_calls_total';
const ROOT = join(import.meta.dirname, '../..');
type Rules = { groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[] };

/** How many refused calls of a name `/v1/refusals` has. */
async function refusedWith(name: string): Promise<number> {
  const headers = { authorization: `Bearer ${stack.apiKey}` };
  const answer = await fetch(`${stack.issuerUrl}/v1/refusals`, { headers });
  const { data } = (await answer.json()) as { data: { names: { name: string; calls: number }[] }[] };
  return data
    .flatMap(({ names }) => names)
    .filter((each) => each.name === name)
    .reduce((sum, { calls }) => sum + calls, 0);
}

test.each(UNKNOWN_KINDS)(
  'an unknown $kind is refused at $provider, and is counted by name in the metrics, the log and /v1/refusals',
  async ({ provider, kind, name, path, body, headers }) => {
    const first = path.replace('/new-1:', '/m:');
    const paths = path.includes('/models/') ? [first, '/v1beta/models/*:generateContent'] : path;
    const { url } = await stack.issue({ provider, path: paths, client_api_key: 'sk', cost_limit: 1_000_000 });
    const series = `${METRIC}{provider="${provider}",name="${name}"}`;
    const [counted, refused] = [(await scrape(metrics.port)).value(series), await refusedWith(name)];
    const answer = await fetch(url.replace(first, path), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    expect(answer.headers.get('x-presign-code')).toBe(kind === 'model' ? 'price_unknown' : 'cost_unbounded');
    // The message names the thing, the version of the lists, and a way out.
    const [, last = name] = /([\w-]+)$/.exec(name) ?? [];
    expect(text).toContain(last);
    expect(text).toMatch(
      kind === 'model' ? /The price lists \([^)]+\)/ : /The gateway's knowledge \([^)]+\)/,
    );
    expect(text).toMatch(/The operator can .*PROVIDERS_FILE/);
    const requestId = answer.headers.get('x-presign-request-id');
    const line = await eventually(async () => stack.logs.find((each) => each.includes(`"${requestId}"`)));
    expect(JSON.parse(line || '{}')).toMatchObject({ unbounded: name, knowledge: expect.any(String) });
    await eventually(async () => (await scrape(metrics.port)).value(series) === counted + 1);
    await eventually(async () => (await refusedWith(name)) === refused + 1);
  },
);

test('an alert reads the metric of all four kinds, by provider and name', () => {
  const { groups } = parse(readFileSync(join(ROOT, 'infra/dashboards/alerts.yaml'), 'utf8')) as Rules;
  const alerts = groups.flatMap(({ rules }) => rules).filter(({ expr }) => expr.includes(METRIC));
  expect(alerts.map(({ alert }) => alert)).toEqual(['PresignCallsUnbounded']);
  expect(alerts[0]?.expr).toContain('by (provider, name)');
  expect(alerts[0]?.annotations.summary).toContain('{{ $labels.name }}');
});
