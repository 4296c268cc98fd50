import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from './many-calls.ts';

/** $2 for 1,000 searches (https://cohere.com/pricing), and nothing for tokens. */
const SEARCH = 2_000;
const PRICING = { priced: { input: 0, rerank_searches: SEARCH }, tokens: { input: 1, output: 1 } };

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    const { documents } = JSON.parse(seen.body.toString()) as { documents: string[] };
    // https://docs.cohere.com/reference/rerank: `search_units` in `billed_units`
    const search_units = Math.ceil(documents.length / 100);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ id: 'r', results: [], meta: { billed_units: { search_units } } }));
  });
  stack = await startStack({ providers: { cohere: { base_url: upstream.url, pricing: PRICING } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const issue = async (limit: number) =>
  (await stack.issue({ provider: 'cohere', path: '/v2/rerank', client_api_key: 'sk', cost_limit: limit }))
    .url;

const call = (url: string, documents: number, model = 'priced') =>
  post(url, { model, query: 'q', documents: Array.from({ length: documents }, (_, i) => `document ${i}`) });

const codeOf = ({ bytes }: { readonly bytes: Buffer }) =>
  (JSON.parse(bytes.toString()) as { code?: string }).code;

test('a rerank is held and charged by searches of 100 documents', async () => {
  const url = await issue(10 * SEARCH);
  expect((await call(url, 100)).status).toBe(200);
  expect(await statusOf(url)).toMatchObject({ spent: SEARCH, held: 0 });
  expect((await call(url, 101)).status).toBe(200);
  expect(await statusOf(url)).toMatchObject({ spent: 3 * SEARCH, held: 0 });
});

test('a rerank that needs more searches than the limit covers does not reach the provider', async () => {
  const url = await issue(2 * SEARCH);
  const before = upstream.seen.length;
  const refused = await call(url, 201);
  expect([refused.status, codeOf(refused)]).toEqual([402, 'cost_limit_too_low']);
  expect(upstream.seen).toHaveLength(before);
});

test('a rerank whose price has no rate for searches has no bound', async () => {
  const refused = await call(await issue(1_000_000), 1, 'tokens');
  expect([refused.status, codeOf(refused)]).toEqual([422, 'cost_unbounded']);
});
