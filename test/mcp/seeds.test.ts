import { keys } from '@presign/limits';
import { connectDatabase } from '@presign/service/database';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { at, outcomes, post, sumOf, tally, toolCall, urlOf } from './holder.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

/** No server listens at this address: these gateways know no URL but by its seed. */
const away = connectDatabase('postgres://nobody@127.0.0.1:1/none');

let upstream: McpUpstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({ providers: {}, gateways: 2, gateway: { db: away.db } });
});
afterAll(async () => {
  await away.close();
  await stack.close();
  await upstream.close();
});

const server = (name: string) => ({
  ...{ name, url: upstream.url, transport: 'http', tools: ['run'] },
  ...{ auth_type: 'bearer', auth_config: { token: 'sk-seeded' } },
});
const issue = (policy: object = {}) =>
  stack.issueMcp({ servers: [server('a')], external_user: 'ann', ...policy });

/** The key of a seed, by the claims of a token: the payload of `v4.public` ends with a signature of 64 bytes. */
const seedOf = (url: string) => {
  const token = new URL(url).searchParams.get('token') ?? url;
  const payload = Buffer.from(token.slice(token.indexOf('v4.public.')).split('.')[2] ?? '', 'base64url');
  const { prt, jti } = JSON.parse(payload.subarray(0, -64).toString()) as { prt: number; jti: string };
  return keys.seed(prt, jti);
};

test('the first call of a fresh bundle of one server needs no Postgres', async () => {
  const answer = await issue({ cost_limit: 10_000, max_uses: 5 });
  const url = urlOf(answer, 'a');
  expect(outcomes(await post(url, toolCall('run', 1)))).toEqual(['ran']);
  expect(upstream.arrived.at(-1)?.headers['authorization']).toBe('Bearer sk-seeded');
  expect(await stack.redis.exists(seedOf(url))).toBe(0);
  expect(outcomes(await post(url, toolCall('other', 1)))).toEqual(['tool_not_allowed']);
  expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 1_000 });
});

test('uses and the spend limit are exact when two gateways load a seed at once', async () => {
  for (const limit of [{ max_uses: 3 }, { cost_limit: 3_000 }]) {
    const answer = await issue(limit);
    const before = upstream.ran.length;
    const url = urlOf(answer, 'a');
    const calls = Array.from({ length: 24 }, (_, i) => post(at(stack, i % 2, url), toolCall('run', i)));
    const { ran = 0 } = tally(await Promise.all(calls));
    expect(upstream.ran.length - before).toBe(ran);
    expect(ran).toBe(3);
  }
});

test('a server whose bundle was revoked before its first call is refused, with or without a seed', async () => {
  const answer = await issue();
  const headers = { authorization: `Bearer ${stack.apiKey}` };
  const revoked = await fetch(`${stack.issuerUrl}/v1/grants/${answer.grant_id}`, {
    method: 'DELETE',
    headers,
  });
  expect(revoked.status).toBe(204);
  expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run', 1)))).toEqual(['grant_revoked']);
});

test('a server without a seed is read from Postgres', async () => {
  const url = urlOf(await issue(), 'a');
  expect(await stack.redis.del(seedOf(url))).toBe(1);
  expect(outcomes(await post(url, toolCall('run', 1)))).toEqual(['database_unavailable']);
});

test('servers that share a budget, and a server whose credential many bundles share, have no seed', async () => {
  const two = await issue({ servers: [server('a'), server('b')] });
  const auth_config = { token_url: 'https://auth.example.com/token', client_id: 'c', refresh_token: 'r' };
  const refreshed = await issue({ servers: [{ ...server('a'), auth_type: 'oauth', auth_config }] });
  // Another URL of the same issuer has one, so theirs would be there by now.
  expect(await stack.redis.exists(seedOf(urlOf(await issue(), 'a')))).toBe(1);
  for (const url of [urlOf(two, 'a'), urlOf(two, 'b'), urlOf(refreshed, 'a')])
    expect(await stack.redis.exists(seedOf(url))).toBe(0);
});

test('the seed of a server has no credential and no token in plain text', async () => {
  const seed = await stack.redis.get(seedOf(urlOf(await issue(), 'a')));
  expect(seed).toContain('"sealed":"');
  for (const secret of ['sk-seeded', 'v4.public', stack.apiKey]) expect(seed).not.toContain(secret);
});
