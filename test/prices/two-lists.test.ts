import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from '../spend/many-calls.ts';
import { listOf } from './price-source.ts';

/** Dollars for a million tokens. The difference is no large drop, so each gateway has its own list. */
const DEAR = 10;
const CHEAP = 6;
const usage = { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 };
const LIMIT = 100_000;

let folder: string;
let upstream: Upstream;
let stack: Stack;
let cheapUrl: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'presign-prices-'));
  const choices = [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }];
  upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ choices, usage }));
  });
  const withList = async (name: string, dollars: number) => {
    const path = join(folder, name);
    await writeFile(path, listOf({ m: dollars }));
    return { priceSource: { source: { is: 'file', path }, everyMs: 3_600_000 } } as const;
  };
  const gateway = await withList('dear.json', DEAR);
  stack = await startStack({ providers: { openai: { base_url: upstream.url } }, gateway });
  cheapUrl = await stack.addGateway(await withList('cheap.json', CHEAP));
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  await rm(folder, { recursive: true });
});

const onCheap = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', cheapUrl);
const issue = async () =>
  (
    await stack.issue({
      provider: 'openai',
      path: '/v1/chat/completions',
      client_api_key: 'sk',
      cost_limit: LIMIT,
    })
  ).url;
const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 200 };

test('two gateways with different lists each charge by their own, and keep one cap', async () => {
  const one = await issue();
  expect((await post(one, body)).status).toBe(200);
  expect((await statusOf(one)).spent).toBe(200 * DEAR);
  expect((await post(onCheap(one), body)).status).toBe(200);
  expect((await statusOf(one)).spent).toBe(200 * DEAR + 200 * CHEAP);

  const url = await issue();
  const answers = await Promise.all(
    Array.from({ length: 120 }, (_, n) => post(n % 2 === 0 ? url : onCheap(url), body)),
  );
  const passed = answers.filter(({ status }) => status === 200).length;
  const { spent, held } = await statusOf(url);
  expect([passed > 0, passed < 120, held]).toEqual([true, true, 0]);
  expect(spent).toBeLessThanOrEqual(LIMIT);
});

test('a gateway reports which lists it uses', async () => {
  const ready = (await (await fetch(`${cheapUrl}/readyz`)).json()) as {
    prices: readonly { source: string }[];
  };
  expect(ready.prices.map(({ source }) => source)).toEqual(['file', 'bundled', 'bundled']);
});
