import { KEYS_KEPT_MS } from '@presign/limits';
import { VARIABLES } from '@presign/service';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

/** Longer than the keys of a grant outlive it. */
const LATE_MS = KEYS_KEPT_MS + 3_600_000;

let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream();
  const slow = { now: () => Date.now() - LATE_MS };
  stack = await startStack({
    providers: { openai: { base_url: upstream.url } },
    gateway: slow,
    issuer: slow,
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

test('a gateway whose clock is a day slow does not revive an expired URL, and loads no budget for it', async () => {
  const ask = { provider: 'openai', path: '/v1/models', method: 'GET', client_api_key: 'sk-real' };
  const { url } = await stack.issue({ ...ask, expires_in: 60, max_uses: 1 });
  const answer = await fetch(url);
  expect([answer.status, await answer.json()]).toMatchObject([401, { error: { code: 'token_expired' } }]);
  expect(upstream.seen).toEqual([]);
  expect(await stack.redis.keys('*:budget:*')).toEqual([]);
  expect(await stack.redis.keys('*:grant:*')).toEqual([]);

  const living = await stack.issue({ ...ask, expires_in: (LATE_MS + 60_000) / 1000 });
  expect((await fetch(living.url)).status).toBe(200);
});

test('keys outlive their grant by the longest configurable call plus an hour', () => {
  const longest = (KEYS_KEPT_MS - 3_600_000) / 1000;
  const read = (seconds: number) =>
    VARIABLES.UPSTREAM_TIMEOUT_SECONDS.schema.safeParse(String(seconds)).success;
  expect([read(longest), read(longest + 1)]).toEqual([true, false]);
});
