import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const call = (url: string) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"model":"m"}' });
const through = (gateway: number, url: string) =>
  url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');

test('exactly 7 of 1,000 parallel calls pass on max_uses = 7, over two gateways', async () => {
  const { url } = await stack.issue({ ...ask, max_uses: 7 });
  const before = upstream.seen.length;
  const statuses = await Promise.all(
    Array.from({ length: 1000 }, async (_, i) => {
      const answer = await call(through(i % 2, url));
      const body = (await answer.json()) as { error?: { code: string } };
      return body.error?.code ?? answer.status;
    }),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(7);
  expect(statuses.filter((status) => status === 'uses_exhausted')).toHaveLength(993);
  expect(upstream.seen.length - before).toBe(7);
});
