import { readFileSync } from 'node:fs';
import { admit } from '@presign/limits';
import { pendingChanges } from '@presign/schema/tables';
import { type Metrics, serveMetrics } from '@presign/service/metrics';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { grantIdOf, refOf } from '../chaos/sample.ts';
import { startLocalForDocs } from '../docs/local.ts';
import { deferred, eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { type Scraped, scrape } from '../harness/scrape.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { ownAccount } from '../issuer/accounts.ts';
import { claimsOf } from '../issuer/ask.ts';
import { addEndpoint } from '../issuer/webhook-receiver.ts';

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const answering =
  (usage: object): Answer =>
  (_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage }));
  };
const OK = answering(USAGE);
/** The cost of a call with that usage. */
const COST = 20;

let upstream: Upstream;
let answer: Answer = OK;
let metrics: Metrics;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream((...args) => answer(...args));
  metrics = await serveMetrics('127.0.0.1', 0);
  const { meter } = metrics;
  stack = await startStack({
    providers: {
      openai: { base_url: upstream.url, pricing: { m: { input: 1_000_000, output: 2_000_000 } } },
      away: { extends: 'openai', base_url: `http://127.0.0.1:${await freePort()}` },
      // Whose host no earlier test has found to be away.
      gone: { extends: 'openai', base_url: `http://127.0.0.1:${await freePort()}` },
    },
    gateway: { meter, leaseMs: 3_000 },
    issuer: { meter },
  });
});
afterAll(async () => {
  await stack.close();
  await metrics.close();
  await upstream.close();
});

const path = '/v1/chat/completions';
const issue = async (fields: object = {}) =>
  (await stack.issue({ provider: 'openai', path, client_api_key: 'sk-real-secret', ...fields })).url;
const CALL = JSON.stringify({ model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] });
async function send(url: string, body = CALL, headers: Record<string, string> = {}) {
  const type = { 'content-type': 'application/json' };
  const answered = await request(url, { method: 'POST', body, headers: { ...type, ...headers } });
  await answered.body.dump();
  return answered.statusCode;
}
const now = () => scrape(metrics.port);

/** How much each series has grown since `before`, once it is as expected. A call is counted when it is over. */
async function expectGrowth(before: Scraped, expected: Record<string, number>): Promise<Scraped> {
  const grown = (after: Scraped) =>
    Object.fromEntries(Object.keys(expected).map((each) => [each, after.value(each) - before.value(each)]));
  const counted = (after: Scraped) => JSON.stringify(grown(after)) === JSON.stringify(expected);
  const after = await eventually(async () => {
    const scraped = await now();
    return counted(scraped) && scraped;
  }, 20_000).catch(now);
  expect(grown(after)).toEqual(expected);
  return after;
}

const outcome = (name: string, provider = 'openai', kind = 'llm') =>
  `presign_calls_total{kind="${kind}",provider="${provider}",outcome="${name}"}`;
const refusal = (code: string, kind = 'llm') => `presign_refusals_total{kind="${kind}",code="${code}"}`;
const ADMITS = 'presign_admit_seconds_count';
const UPSTREAM = 'presign_upstream_seconds_count{provider="openai"}';

describe('/metrics of a gateway', () => {
  test('counts a settled call with its times, its cost and its hold', async () => {
    const url = await issue({ cost_limit: 1_000 });
    const before = await now();
    const held = deferred();
    const asked = deferred();
    answer = async (seen, response, incoming) => {
      asked.resolve();
      await held.promise;
      return OK(seen, response, incoming);
    };
    const answered = send(url);
    await asked.promise;
    const during = await now();
    expect(during.value('presign_holds')).toBe(1);
    const hold = during.value('presign_held_microdollars');
    // 50 tokens of output, and the bytes of the input.
    expect(hold).toBeGreaterThan(100);
    expect(hold).toBeLessThan(1_000);
    held.resolve();
    expect(await answered).toBe(200);
    const after = await expectGrowth(before, {
      [outcome('complete')]: 1,
      'presign_own_seconds_count{kind="llm"}': 1,
      [ADMITS]: 1,
      [UPSTREAM]: 1,
      'presign_first_byte_seconds_count{provider="openai"}': 1,
      presign_hold_cost_ratio_count: 1,
      'presign_cost_microdollars_total{provider="openai"}': COST,
      presign_holds: 0,
      presign_held_microdollars: 0,
    });
    const ratio = after.value('presign_hold_cost_ratio_sum') - before.value('presign_hold_cost_ratio_sum');
    expect(ratio).toBeCloseTo(hold / COST, 6);
    expect(after.value('presign_overruns_total')).toBe(0);
  });

  test.each([
    ['has no uses left', { max_uses: 1 }, 'uses_exhausted', 403, 1],
    ['takes another path', {}, 'path_not_allowed', 403, 0],
  ])(
    'counts a call that %s as a refusal, without an upstream',
    async (_why, limits, code, status, admits) => {
      answer = OK;
      const url = await issue(limits);
      if (code === 'uses_exhausted') await send(url);
      const before = await now();
      expect(await send(code === 'path_not_allowed' ? `${url}/x` : url)).toBe(status);
      await expectGrowth(before, {
        [outcome('refused')]: 1,
        [refusal(code)]: 1,
        [outcome('complete')]: 0,
        'presign_own_seconds_count{kind="llm"}': 1,
        [ADMITS]: admits,
        [UPSTREAM]: 0,
      });
    },
  );

  test('counts a call without a valid token under no provider', async () => {
    const before = await now();
    expect(await send(`${stack.gatewayUrls[0]}/llm/t/stranger/v1/x`)).toBe(401);
    await expectGrowth(before, { [outcome('refused', '')]: 1, [refusal('token_invalid')]: 1 });
  });

  test.each([
    ['fails', 'provider_error', 500, 'openai'],
    ['is not reached', 'unsent', 502, 'away'],
  ])('counts a provider that %s', async (_how, name, status, provider) => {
    answer = (_seen, response) => void response.writeHead(500).end('{}');
    const before = await now();
    expect(await send(await issue({ provider }))).toBe(status);
    const code = provider === 'away' ? 1 : 0;
    await expectGrowth(before, { [outcome(name, provider)]: 1, [refusal('upstream_unreachable')]: code });
  });

  test('counts a call that costs more than its hold', async () => {
    answer = answering({ ...USAGE, completion_tokens: 5_000_000 });
    const before = await now();
    expect(await send(await issue({ cost_limit: 1_000 }))).toBe(200);
    await expectGrowth(before, { presign_overruns_total: 1, [outcome('complete')]: 1 });
  });

  test('counts usage that contradicts itself, and unknown counts', async () => {
    const contradicts = 'presign_usage_contradictions_total{provider="openai",why="no_input"}';
    const unknown = 'presign_unknown_usage_total{provider="openai",name="new_tokens"}';
    answer = answering({ ...USAGE, prompt_tokens: 0, total_tokens: 5 });
    const before = await now();
    expect(await send(await issue({ cost_limit: 10_000 }))).toBe(200);
    answer = answering({ ...USAGE, new_tokens: 3 });
    expect(await send(await issue({ cost_limit: 10_000 }))).toBe(200);
    await expectGrowth(before, { [contradicts]: 1, [unknown]: 1 });
  });

  test.each([
    ['a field', { new_field: 1 }, 'new_field'],
    ['a model', { model: 'gpt-0' }, 'model=gpt-0'],
    [
      'a tool',
      { tools: [{ type: 'function', function: { name: 'f' } }, { type: 'new' }] },
      'tools[].type=new',
    ],
    ['a name that is no name', { 'a b\nc': 1 }, 'other'],
    ['a long name', { ['x'.repeat(41)]: 1 }, 'other'],
    ['a long model', { model: 'm'.repeat(41) }, 'model'],
  ])('counts a call that is refused because its %s has no bound, by name', async (_what, fields, name) => {
    answer = OK;
    const series = `presign_unbounded_calls_total{provider="openai",name="${name}"}`;
    const before = await now();
    const call = JSON.stringify({ ...JSON.parse(CALL), ...fields });
    expect(await send(await issue({ cost_limit: 10_000 }), call)).toBe(422);
    await expectGrowth(before, { [series]: 1 });
    const line = stack.logs.filter((text) => text.includes('"unbounded":')).at(-1) ?? '{}';
    expect(JSON.parse(line)).toMatchObject({ unbounded: name, status: 422 });
  });

  test('shows by provider how many calls wait for a first byte, and how long ago the last first byte arrived', async () => {
    const series = (name: string, provider = 'openai') => `presign_${name}{provider="${provider}"}`;
    const held = deferred();
    let asked = 0;
    answer = async (seen, response, incoming) => {
      asked += 1;
      await held.promise;
      return OK(seen, response, incoming);
    };
    const url = await issue();
    const answered = [send(url), send(url)];
    await eventually(async () => asked === 2);
    const during = await eventually(async () => {
      const scraped = await now();
      return scraped.value(series('silent_seconds')) > 0.5 && scraped;
    });
    expect(during.value(series('waiting_calls'))).toBe(2);
    held.resolve();
    expect(await Promise.all(answered)).toEqual([200, 200]);
    // A call that never reaches its provider waits no longer.
    expect(await send(await issue({ provider: 'gone' }))).toBe(502);
    const after = await now();
    for (const provider of ['openai', 'gone'])
      for (const name of ['waiting_calls', 'silent_seconds'])
        expect(after.value(series(name, provider)), `${name} of ${provider}`).toBe(0);
    answer = OK;
  });

  test('counts a hold whose gateway stopped', async () => {
    answer = OK;
    const url = await issue({ max_uses: 2 });
    expect(await send(url)).toBe(200);
    const ref = await refOf(stack.db, url);
    const session = claimsOf(stack, url).sub;
    const record = {
      acc: await ownAccount(stack),
      ses: session,
      grt: ref.id,
      prv: 'openai',
      beg: Date.now(),
    };
    const before = await now();
    // As a gateway does that dies right after it.
    const admission = await admit(stack.redis, ref, {
      ...{ holdId: 'f'.repeat(32), uses: 1, leaseMs: 1 },
      ...{ record: JSON.stringify(record), hold: undefined },
    });
    expect(admission.is).toBe('admitted');
    await expectGrowth(before, { presign_leases_expired_total: 1 });
  });

  test('counts an MCP call, a bundle document and a status request', async () => {
    answer = (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"jsonrpc":"2.0","id":1,"result":{}}');
    };
    const servers = [{ name: 's', url: `${upstream.url}/mcp`, transport: 'http' }];
    const bundle = await stack.issueMcp({ servers, max_uses: 1 });
    const tool = bundle.servers['s']?.url ?? '';
    const accept = { accept: 'application/json, text/event-stream' };
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret-tool"}}';
    const before = await now();
    expect(await send(tool, call, accept)).toBe(200);
    await send(tool, call, accept);
    for (const url of [bundle.bundle_url, (await issue()).slice(0, -path.length)])
      expect((await fetch(url)).status).toBe(200);
    await expectGrowth(before, {
      [outcome('complete', 'mcp', 'mcp')]: 1,
      [refusal('uses_exhausted', 'mcp')]: 1,
      'presign_cost_microdollars_total{provider="mcp"}': 1_000,
      [outcome('served', 'mcp', 'bundle')]: 1,
      [outcome('served', 'openai', 'describe')]: 1,
    });
  });
});

describe('/metrics of an issuer', () => {
  test('counts requests by route, never by their ids', async () => {
    const before = await now();
    const headers = { authorization: `Bearer ${stack.apiKey}` };
    const id = '0198c0de-0000-7000-8000-000000000001';
    await fetch(`${stack.issuerUrl}/v1/sessions/${id}`, { headers });
    await fetch(`${stack.issuerUrl}/v1/sessions/${id}`);
    await fetch(`${stack.issuerUrl}/v1/${id}`, { headers });
    await issue();
    const after = await expectGrowth(before, {
      'presign_requests_total{route="GET /v1/sessions/{id}",status="404"}': 1,
      'presign_requests_total{route="GET /v1/sessions/{id}",status="401"}': 1,
      'presign_requests_total{route="none",status="404"}': 1,
      'presign_requests_total{route="POST /v1/presign",status="200"}': 1,
      presign_request_seconds_count: 4,
    });
    expect(after.text).not.toContain(id);
  });

  test('shows webhook deliveries and revocations that wait', async () => {
    // The overrun above has revoked a grant, too.
    await stack.issuer.ledger.drainAll();
    await eventually(async () => (await now()).value('presign_pending_changes') === 0);
    const before = await now();
    const endpoint = await addEndpoint(stack, {
      events: ['grant.revoked'],
      answer: (_seen, response) => void response.writeHead(500).end(),
    });
    const grant = { id: grantIdOf(await issue()) };
    await fetch(`${stack.issuerUrl}/v1/grants/${grant.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    const changeId = '0198c0de-0000-7000-8000-000000000002';
    await stack.db.insert(pendingChanges).values({ changeId, dueAt: new Date('2100-01-01') });
    await expectGrowth(before, { presign_webhook_backlog: 1, presign_pending_changes: 1 });
    const failed = 'presign_webhook_tries_total{outcome="failed"}';
    await eventually(async () => (await now()).value(failed) > before.value(failed));
    await endpoint.upstream.close();
  });

  test('counts partitions that reopen after a loss of data', async () => {
    const before = await now();
    await flush(stack.redis);
    await expectGrowth(before, { presign_epoch_changes_total: 64 });
    await stack.issuer.ledger.drainAll();
  });

  test('shows how far the ledger is behind', async () => {
    answer = OK;
    const url = await issue();
    // The end of an MCP call comes a second behind its charge, and figures are up to five seconds old.
    const before = await eventually(async () => {
      const scraped = await now();
      return scraped.value('presign_usage_stream_entries') === 0 && scraped;
    });
    await stack.issuer.ledger.close();
    expect(await send(url)).toBe(200);
    const after = await expectGrowth(before, {
      presign_usage_stream_entries: 1,
      presign_fullest_partition_entries: 1,
    });
    await eventually(async () => (await now()).value('presign_ledger_lag_seconds') > 0.5);
    expect(after.has('presign_ledger_lag_seconds')).toBe(true);
    await stack.issuer.ledger.drainAll();
    await eventually(async () => (await now()).value('presign_ledger_lag_seconds') === 0);
  });

  test("shows, as a gateway's does, whether it is ready, and which store has a problem", async () => {
    const flags = async () => {
      const scraped = await now();
      const of = (service: string) => [
        scraped.value(`presign_ready{service="${service}"}`),
        ...['postgres', 'redis'].map((store) =>
          scraped.value(`presign_store_problem{service="${service}",store="${store}"}`),
        ),
      ];
      return { issuer: of('issuer'), gateway: of('gateway') };
    };
    const fine = { issuer: [1, 0, 0], gateway: [1, 0, 0] };
    expect(await flags()).toEqual(fine);
    // The ledger is closed, so nothing opens the partitions again.
    await flush(stack.redis);
    const closed = { issuer: [1, 0, 0], gateway: [0, 0, 1] };
    await eventually(async () => JSON.stringify(await flags()) === JSON.stringify(closed));
    await stack.issuer.ledger.drainAll();
    await eventually(async () => JSON.stringify(await flags()) === JSON.stringify(fine));
  });
});

test('every metric is in docs/reference/metrics.md with its type and labels, the page has no other, and each states its unit', async () => {
  const page = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8');
  const rows = Array.from(
    page.matchAll(/^\| `(presign_\w+)` +\| (\w+) +\| (.*?) +\| /gm),
    ([, name = '', type, labels = '']) => [name, { type, labels: namesIn(labels) }] as const,
  );
  expect(new Set(rows.map(([name]) => name)).size).toBe(rows.length);
  // The clocks are compared every ten seconds.
  const { metrics: exposed } = await eventually(async () => {
    const scraped = await now();
    return scraped.text.includes('presign_clock_offset_seconds{') && scraped;
  });
  const shown = [...exposed].map(
    ([name, { type, labels }]) => [name, { type, labels: [...labels].sort() }] as const,
  );
  expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(rows));
  expect([...exposed].filter(([, { unit }]) => unit === '')).toEqual([]);
  const labels = new Set(shown.flatMap(([, metric]) => metric.labels));
  const listed = page.split('\n## ').find((section) => section.startsWith('Labels\n')) ?? '';
  const described = Array.from(listed.matchAll(/^- `([a-z]+)`:/gm), ([, label = '']) => label);
  expect(new Set(described)).toEqual(labels);
});

test('/metrics contains no URL, token, key, id or name from a request', async () => {
  const { text, metrics: exposed } = await now();
  for (const secret of [
    'v4.public',
    'presign_sk',
    'sk-real',
    'secret-tool',
    '127.0.0.1',
    'http:',
    'stranger',
  ])
    expect(text).not.toContain(secret);
  // The version of the knowledge is the operator's.
  const labels = new Set(Array.from(text.matchAll(/(?<!version)="([^"]*)"/g), ([, value = '']) => value));
  expect(labels.size).toBeGreaterThan(20);
  // An id is a UUID, or 32 hex digits. `m` is the model.
  expect([...labels].filter((value) => value === 'm' || /[0-9a-f]{8}/i.test(value))).toEqual([]);
  expect([...exposed.keys()].filter((name) => !name.startsWith('presign_'))).toEqual([]);
  for (const { help } of exposed.values()) expect(help).toMatch(/^[A-Z0-9]/);
});

test('the port of metrics serves GET /metrics and nothing else', async () => {
  const url = `http://127.0.0.1:${metrics.port}`;
  const type = (await fetch(`${url}/metrics?x=1`)).headers.get('content-type');
  expect(type).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect((await fetch(`${url}/metrics`, { method: 'HEAD' })).status).toBe(200);
  expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(405);
  for (const path of ['/', '/metrics/', '/healthz']) expect((await fetch(url + path)).status).toBe(404);
});

test('a gateway serves metrics on METRICS_PORT, and opens no port without it', async () => {
  const port = await freePort();
  const gateway = await startGatewayProcess(stack, { METRICS_PORT: String(port) });
  const { metrics: exposed } = await scrape(port);
  expect(exposed.has('presign_holds')).toBe(true);
  expect(exposed.has('presign_ledger_lag_seconds')).toBe(false);
  expect(await gateway.stop()).toBe(0);
  const without = await serveMetrics('127.0.0.1', undefined);
  expect(without.port).toBe(undefined);
  await without.close();
});

test('start serves the metrics of both services on one port', async () => {
  const port = await freePort();
  const local = await startLocalForDocs({ METRICS_PORT: String(port) });
  const scraped = await eventually(async () => {
    const all = await scrape(port);
    return all.text.includes('presign_clock_offset_seconds{service="gateway"') && all;
  });
  for (const service of ['issuer', 'gateway']) {
    expect(scraped.has(`presign_clock_offset_seconds{service="${service}"}`)).toBe(true);
    expect(scraped.has(`presign_price_list_age_seconds{service="${service}",source="bundled"}`)).toBe(true);
    expect(scraped.text).toContain(
      `presign_knowledge_age_seconds{service="${service}",source="bundled",version=`,
    );
  }
  for (const series of ['presign_holds', 'presign_ledger_lag_seconds'])
    expect(scraped.has(series)).toBe(true);
  await local.close();
  await expect(scrape(port)).rejects.toThrow();
});

const namesIn = (cell: string) => Array.from(cell.matchAll(/`(\w+)`/g), ([, name = '']) => name).sort();
