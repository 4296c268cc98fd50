import { keys } from '@presign/limits';
import { ledger } from '@presign/schema/ledger-tables';
import { connectDatabase } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addVirtualKey, ownAccount } from '../issuer/accounts.ts';
import { claimsOf } from '../issuer/ask.ts';

/** No server listens at this address: these gateways know no URL but by its seed. */
const away = connectDatabase('postgres://user@127.0.0.1:1/none');

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}');
  });
  const pricing = { m: { input: 1_000_000, output: 1_000_000 } };
  stack = await startStack({
    providers: { openai: { base_url: upstream.url, pricing } },
    gateways: 2,
    gateway: { db: away.db },
  });
});
afterAll(async () => {
  await away.close();
  await stack.close();
  await upstream.close();
});

const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-seeded' };
const CALL = JSON.stringify({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });

async function call(url: string, gateway = 0): Promise<{ status: number; text: string }> {
  const target = url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
  const headers = { 'content-type': 'application/json' };
  const answered = await request(target, { method: 'POST', headers, body: CALL });
  return { status: answered.statusCode, text: await answered.body.text() };
}

const seedOf = (url: string) => {
  const { prt, jti } = claimsOf(stack, url);
  return keys.seed(prt, jti);
};

test('the first call of a fresh URL needs no Postgres, and the ledger records it as usual', async () => {
  const { url, session_id } = await stack.issue({
    ...ask,
    cost_limit: 1_000,
    external_user: 'ann',
    max_uses: 2,
  });
  expect(await call(url)).toMatchObject({ status: 200 });
  expect(upstream.seen.at(-1)?.headers['authorization']).toBe('Bearer sk-seeded');
  expect(await stack.redis.exists(seedOf(url))).toBe(0);
  await callsSettled(stack);
  const [row] = await stack.db.select().from(ledger).where(eq(ledger.sessionId, session_id));
  expect(row).toMatchObject({ externalUser: 'ann', uses: 1, costMicrousd: 20 });
});

test('uses and the spend limit are exact when two gateways load a seed at once', async () => {
  for (const limit of [{ max_uses: 3 }, { cost_limit: 800 }]) {
    const { url } = await stack.issue({ ...ask, ...limit });
    const before = upstream.seen.length;
    const sent = await Promise.all(Array.from({ length: 24 }, (_, i) => call(url, i % 2)));
    const served = sent.filter(({ status }) => status === 200).length;
    expect(upstream.seen.length - before).toBe(served);
    expect(served).toBeGreaterThan(0);
    expect(served).toBeLessThanOrEqual(limit.max_uses ?? 40);
    if (limit.max_uses) expect(served).toBe(3);
    for (const { status } of sent) expect([200, 402, 403, 429]).toContain(status);
  }
});

test('a URL without a seed is read from Postgres', async () => {
  const { url } = await stack.issue(ask);
  expect(await stack.redis.del(seedOf(url))).toBe(1);
  expect(await call(url)).toMatchObject({
    status: 503,
    text: expect.stringContaining('database_unavailable'),
  });
});

test('a URL that was revoked before its first call is refused, with or without a seed', async () => {
  const { url } = await stack.issue(ask);
  const headers = { authorization: `Bearer ${stack.apiKey}` };
  const { jti } = claimsOf(stack, url);
  const revoked = await fetch(`${stack.issuerUrl}/v1/grants/${jti}`, { method: 'DELETE', headers });
  expect(revoked.status).toBe(204);
  expect(await call(url)).toMatchObject({ status: 403, text: expect.stringContaining('grant_revoked') });
});

test('a URL in a named session or of a virtual key has no seed', async () => {
  const { session_id } = await stack.issue(ask);
  const virtual_key = await addVirtualKey(stack, await ownAccount(stack));
  const { url: inSession } = await stack.issue({ ...ask, session_id });
  const { url: ofKey } = await stack.issue({ ...ask, client_api_key: null, virtual_key });
  for (const url of [inSession, ofKey]) expect(await stack.redis.exists(seedOf(url))).toBe(0);
});

test('a seed has no provider key and no token in plain text', async () => {
  const { url } = await stack.issue(ask);
  const seed = await stack.redis.get(seedOf(url));
  expect(seed).toContain('"sealed":"');
  for (const secret of ['sk-seeded', 'v4.public', stack.apiKey]) expect(seed).not.toContain(secret);
});
