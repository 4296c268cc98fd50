import { randomUUID } from 'node:crypto';
import { keys } from '@presign/limits';
import { type McpPresignAnswer, sessionAnswer } from '@presign/schema';
import { budgets, grants, sessions } from '@presign/schema/tables';
import { and, eq, isNull } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { at, outcomes, post, send as sendTo, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { claimsOf, issue, least, refused, send } from './ask.ts';
import { bundleClaims, serverClaims } from './ask-mcp.ts';

let upstream: Upstream;
let mcpUpstream: McpUpstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream();
  mcpUpstream = await startMcpUpstream();
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  await mcpUpstream.close();
});

type Asked = Pick<Stack, 'issuerUrl' | 'apiKey'>;
const remove = (path: string, of: Asked = stack) => send(of, { method: 'DELETE', path: `/v1/${path}` });
async function revoked(path: string): Promise<void> {
  const sent = await remove(path);
  expect([sent.status, sent.text]).toEqual([204, '']);
}
const idIn = (url: string) => claimsOf(stack, url).jti;
const session = async (id: string) =>
  sessionAnswer.parse(JSON.parse((await send(stack, { method: 'GET', path: `/v1/sessions/${id}` })).text));

/** The outcome of a call at each gateway: `ran`, or the code of the refusal. */
async function calls(url: string): Promise<string[]> {
  const found: string[] = [];
  for (const gateway of [0, 1]) {
    const answer = await fetch(at(stack, gateway, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"model":"m","messages":[]}',
    });
    found.push(answer.ok ? 'ran' : ((await answer.json()) as { error: { code: string } }).error.code);
  }
  return found;
}
/** The same for an MCP server of a bundle. */
async function mcpCalls(answer: McpPresignAnswer, name: string): Promise<unknown[]> {
  const heard = [0, 1].map((gateway) => post(at(stack, gateway, urlOf(answer, name)), toolCall('run')));
  return (await Promise.all(heard)).flatMap(outcomes);
}
const bundleCalls = (answer: McpPresignAnswer) =>
  Promise.all(
    [0, 1].map(async (gateway) => (await sendTo(at(stack, gateway, answer.bundle_url), 'GET')).status),
  );
const issueBundle = (fields: object = {}) => {
  const servers = ['a', 'b'].map((name) => ({ name, url: mcpUpstream.url, transport: 'http' }));
  return stack.issueMcp({ servers, ...fields });
};

const RAN = ['ran', 'ran'];
const REFUSED = ['grant_revoked', 'grant_revoked'];

describe('DELETE /v1/sessions/{id}', () => {
  test('ends all its URLs at every gateway from the next call on, whether Redis knows them or not', async () => {
    const known = await issue(stack, {});
    const { session_id } = known;
    const unknown = await issue(stack, { session_id });
    const bundle = await issueBundle({ session_id });
    const other = await issue(stack, {});
    expect(await calls(known.url)).toEqual(RAN);
    expect(await mcpCalls(bundle, 'a')).toEqual(RAN);
    const [seen, ran] = [upstream.seen.length, mcpUpstream.ran.length];
    await revoked(`sessions/${session_id}`);
    for (const { url } of [known, unknown]) expect(await calls(url)).toEqual(REFUSED);
    for (const name of ['a', 'b']) expect(await mcpCalls(bundle, name)).toEqual(REFUSED);
    expect(await bundleCalls(bundle)).toEqual([403, 403]);
    expect([upstream.seen.length, mcpUpstream.ran.length]).toEqual([seen, ran]);
    expect(await calls(other.url)).toEqual(RAN);
  });

  test('is visible in the session, and no grant can join it afterwards', async () => {
    const { session_id } = await issue(stack, {});
    await revoked(`sessions/${session_id}`);
    const told = await session(session_id);
    expect(told).toMatchObject({ status: 'ended', grants: [{ status: 'revoked' }] });
    expect(told.revoked_at).toBeCloseTo(Date.now() / 1000, -2);
    refused(await send(stack, { body: { ...least, session_id } }), 'session_conflict', 'session_id');
    await revoked(`sessions/${session_id}`);
    expect((await session(session_id)).revoked_at).toBe(told.revoked_at);
  });

  test('ends URLs that join the session at the same moment', async () => {
    for (let round = 0; round < 10; round++) {
      const { session_id } = await issue(stack, {});
      const joining = Array.from({ length: 6 }, () => send(stack, { body: { ...least, session_id } }));
      await revoked(`sessions/${session_id}`);
      const joined = (await Promise.all(joining)).filter(({ status }) => status === 200);
      for (const { text } of joined) expect(await calls(JSON.parse(text).url)).toEqual(REFUSED);
      const left = and(eq(grants.sessionId, session_id), isNull(grants.revokedAt));
      expect(await stack.db.$count(grants, left)).toBe(0);
    }
  });
});

describe('DELETE /v1/grants/{id}', () => {
  test('ends one URL, and its session stays active', async () => {
    const one = await issue(stack, {});
    const other = await issue(stack, { session_id: one.session_id });
    await calls(one.url);
    await revoked(`grants/${idIn(one.url)}`);
    expect(await calls(one.url)).toEqual(REFUSED);
    expect(await calls(other.url)).toEqual(RAN);
    const told = await session(one.session_id);
    expect(told).toMatchObject({ status: 'active', revoked_at: null });
    expect(told.grants.map(({ status }) => status).sort()).toEqual(['active', 'revoked']);
    expect(await calls((await issue(stack, { session_id: one.session_id })).url)).toEqual(RAN);
  });

  test('ends the servers of a bundle with it', async () => {
    const bundle = await issueBundle();
    expect(await mcpCalls(bundle, 'a')).toEqual(RAN);
    await revoked(`grants/${bundleClaims(stack, bundle).jti}`);
    for (const name of ['a', 'b']) expect(await mcpCalls(bundle, name)).toEqual(REFUSED);
    expect(await bundleCalls(bundle)).toEqual([403, 403]);
    expect((await session(bundle.session_id)).status).toBe('ended');
  });

  test('ends one server of a bundle alone', async () => {
    const bundle = await issueBundle();
    await revoked(`grants/${serverClaims(stack, bundle, 'a').jti}`);
    expect(await mcpCalls(bundle, 'a')).toEqual(REFUSED);
    expect(await mcpCalls(bundle, 'b')).toEqual(RAN);
    expect(await bundleCalls(bundle)).toEqual([200, 200]);
  });
});

describe('DELETE /v1/sessions', () => {
  test.each(['external_user', 'external_session'])('ends everything issued with an %s', async (field) => {
    const [theirs, others] = [{ [field]: `a+b ${randomUUID()}` }, { [field]: randomUUID() }];
    const own = await issue(stack, theirs);
    const bundle = await issueBundle(theirs);
    const shared = await issue(stack, others);
    const joined = await issue(stack, { ...theirs, session_id: shared.session_id });
    for (const { url } of [own, shared, joined]) expect(await calls(url)).toEqual(RAN);
    await revoked(`sessions?${new URLSearchParams(theirs)}`);
    for (const { url } of [own, joined]) expect(await calls(url)).toEqual(REFUSED);
    for (const name of ['a', 'b']) expect(await mcpCalls(bundle, name)).toEqual(REFUSED);
    // A session that others are in goes on for them, and only for them.
    expect(await calls(shared.url)).toEqual(RAN);
    const session_ids = [own.session_id, bundle.session_id];
    for (const session_id of session_ids) {
      expect(await session(session_id)).toMatchObject({ status: 'ended', revoked_at: expect.any(Number) });
      refused(await send(stack, { body: { ...least, session_id } }), 'session_conflict', 'session_id');
    }
    expect((await session(shared.session_id)).revoked_at).toBeNull();
    await revoked(`sessions?${new URLSearchParams(theirs)}`);
    expect(await calls((await issue(stack, theirs)).url)).toEqual(RAN);
  });

  test('for an unknown user revokes nothing, and never revokes URLs of another account', async () => {
    const { id } = await addAccount(stack);
    const other = { ...stack, apiKey: await addApiKey(stack, id) };
    const external_user = randomUUID();
    const [mine, theirs] = [await issue(stack, { external_user }), await issue(other, { external_user })];
    expect((await remove(`sessions?external_user=${external_user}`, other)).status).toBe(204);
    expect(await calls(mine.url)).toEqual(RAN);
    expect(await calls(theirs.url)).toEqual(REFUSED);
    await revoked(`sessions?external_user=${randomUUID()}`);
  });

  test('needs exactly one filter, and revokes nothing without it', async () => {
    const alive = and(isNull(grants.revokedAt), eq(grants.accountId, await ownAccount(stack)));
    const before = await stack.db.$count(grants, alive);
    const wrong = ['', '?', '?external_user=a&external_session=b'];
    for (const query of wrong) {
      const message = refused(await remove(`sessions${query}`), 'invalid_request', 'external_user');
      expect(message).toBe(
        'external_user: expected exactly one of external_user, external_session and api_key.',
      );
    }
    refused(await remove('sessions?external_usr=a'), 'invalid_request', 'external_usr');
    refused(await remove('sessions?status=active'), 'invalid_request', 'status');
    const twice = await remove('sessions?external_user=a&external_user=b');
    expect(refused(twice, 'invalid_request', 'external_user')).toContain('appears twice');
    expect(await stack.db.$count(grants, alive)).toBe(before);
  });

  test('answers once the tombstones of very many grants are written', async () => {
    const accountId = await ownAccount(stack);
    const external_user = randomUUID();
    const issuedAt = new Date();
    const expiresAt = new Date(issuedAt.getTime() + 60_000);
    const rows = Array.from({ length: 1_100 }, (_, i) => ({
      id: randomUUID(),
      budgetId: randomUUID(),
      partition: i % 64,
    }));
    const sessionId = randomUUID();
    await stack.db.insert(sessions).values({ id: sessionId, accountId });
    await stack.db.insert(budgets).values(rows.map(({ budgetId: id, partition }) => ({ id, partition })));
    const common = { accountId, sessionId, kind: 'llm', provider: 'openai', issuedAt, expiresAt } as const;
    await stack.db
      .insert(grants)
      .values(rows.map(({ id, budgetId }) => ({ ...common, id, budgetId, externalUser: external_user })));
    await revoked(`sessions?external_user=${external_user}`);
    const stones = await Promise.all(
      rows.map(({ id, partition }) => stack.redis.hget(keys.grant(partition, id), 'revoked')),
    );
    expect(new Set(stones)).toEqual(new Set(['1']));
  });
});

test('each revocation of an expired grant reaches gateways while one of its calls can still run', async () => {
  const { url, session_id } = await issue(stack, {});
  const { jti, prt } = claimsOf(stack, url);
  const revokedAt = async () =>
    (await stack.db.select().from(grants).where(eq(grants.id, jti)))[0]?.revokedAt;
  const expire = (agoMs: number) =>
    stack.db
      .update(grants)
      .set({ expiresAt: new Date(Date.now() - agoMs) })
      .where(eq(grants.id, jti));
  await expire(60_000);
  for (const path of [`grants/${jti}`, `grants/${jti}`, `sessions/${session_id}`]) {
    await revoked(path);
    expect(await stack.redis.hget(keys.grant(prt, jti), 'revoked')).toBe('1');
    await stack.redis.del(keys.grant(prt, jti));
  }
  // It had ended before.
  expect(await revokedAt()).toBeNull();
  await expire(365 * 86_400_000);
  await revoked(`grants/${jti}`);
  expect(await stack.redis.exists(keys.grant(prt, jti))).toBe(0);
});

test('grants and sessions of another account, unknown ids and malformed ids return 404', async () => {
  const { url, session_id } = await issue(stack, {});
  const { id } = await addAccount(stack);
  const other = { ...stack, apiKey: await addApiKey(stack, id, { scopes: ['admin'] }) };
  for (const path of [`sessions/${session_id}`, `grants/${idIn(url)}`])
    refused(await remove(path, other), 'not_found');
  expect(await calls(url)).toEqual(RAN);
  for (const path of ['sessions', 'grants']) {
    refused(await remove(`${path}/${randomUUID()}`), 'not_found');
    refused(await remove(`${path}/no-id`), 'not_found');
    refused(await remove(`${path}/%00`), 'not_found');
  }
});

test('a key that may issue may revoke, and a key that may only read may not', async () => {
  const account = await ownAccount(stack);
  const { url, session_id } = await issue(stack, {});
  const reader = { ...stack, apiKey: await addApiKey(stack, account, { scopes: ['read'] }) };
  for (const path of [`sessions/${session_id}`, `grants/${idIn(url)}`, 'sessions?external_user=u']) {
    refused(await remove(path, reader), 'forbidden');
  }
  expect(await calls(url)).toEqual(RAN);
  const backend = { ...stack, apiKey: await addApiKey(stack, account, { scopes: ['presign'] }) };
  expect((await remove(`grants/${idIn(url)}`, backend)).status).toBe(204);
});
