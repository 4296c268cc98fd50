import { findCredential } from '@presign/limits';
import { credentials, grants, oauthTokens, sessions } from '@presign/schema/tables';
import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, issue, least, send } from './ask.ts';
import { issueMcp, server, writtenBundle } from './ask-mcp.ts';
import { startOwnIssuer } from './own-issuer.ts';
import { createVirtualKey } from './virtual-keys.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ key: seen.headers.authorization }));
  });
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const call = (url: string) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"m","messages":[]}',
  });
const keyOf = async (url: string) => ((await (await call(url)).json()) as { key?: string }).key;
const get = async (path: string) => {
  const sent = await send(stack, { method: 'GET', path });
  expect(sent.status, sent.text).toBe(200);
  return sent.text;
};

/** The credentials of a session's grants. */
async function credentialsOf(sessionId: string) {
  const used = stack.db
    .select({ id: grants.credentialId })
    .from(grants)
    .where(eq(grants.sessionId, sessionId));
  return stack.db.select().from(credentials).where(inArray(credentials.id, used));
}
/** Moves a session's grants and credentials so many days into the past, with an expiry an hour after their issue. */
async function age(sessionId: string, days: number): Promise<void> {
  const ago = sql`now() - ${days} * interval '1 day'`;
  const expiresAt = sql`${ago} + interval '1 hour'`;
  await stack.db.update(grants).set({ issuedAt: ago, expiresAt }).where(eq(grants.sessionId, sessionId));
  const ids = (await credentialsOf(sessionId)).map(({ id }) => id);
  await stack.db.update(credentials).set({ createdAt: ago }).where(inArray(credentials.id, ids));
}
/** Lets a sweep pass over all credentials: a credential that is to be erased was issued with the highest id. */
async function sweep(): Promise<void> {
  const { session_id } = await issue(stack, {});
  const last = 'ffffffff-ffff-4fff-bfff-ffffffffffff';
  await stack.db.update(grants).set({ credentialId: null }).where(eq(grants.credentialId, last));
  const [credential] = await credentialsOf(session_id);
  await stack.db.delete(credentials).where(eq(credentials.id, last));
  const createdAt = sql`now() - interval '2 days'`;
  await stack.db
    .insert(credentials)
    .values({ id: last, accountId: credential?.accountId ?? '', sealed: 'sealed', createdAt });
  // A sweep begins with its tasks.
  const issuer = await startOwnIssuer(stack);
  await eventually(async () => {
    const [row] = await stack.db.select().from(credentials).where(eq(credentials.id, last));
    return row?.sealed === '' ? true : undefined;
  });
  await issuer.close();
}
const sealedOf = async (sessionId: string) =>
  (await credentialsOf(sessionId)).map(({ sealed }) => (sealed === '' ? 'erased' : 'kept'));

test('a provider key is erased a day after its last grant expired, and sessions and usage are unchanged', async () => {
  const { url, session_id } = await issue(stack, { external_user: 'user-1' });
  expect(await keyOf(url)).toBe(`Bearer ${least.client_api_key}`);
  await callsSettled(stack);
  const { prt } = claimsOf(stack, url);
  const [{ id } = { id: '' }] = await credentialsOf(session_id);
  expect(await findCredential(stack.redis, prt, id)).toBeDefined();
  await age(session_id, 1);
  await sweep();
  expect(await sealedOf(session_id)).toEqual(['kept']);

  // It expired 24.5 hours ago. Redis keeps its copy an hour longer than Postgres.
  await age(session_id, 25.5 / 24);
  const paths = [
    `/v1/sessions/${session_id}`,
    '/v1/usage?from=0&to=4000000000&group_by=external_user,session_id',
  ];
  const before = await Promise.all(paths.map(get));
  await sweep();
  expect(await sealedOf(session_id)).toEqual(['erased']);
  expect(await Promise.all(paths.map(get))).toEqual(before);
  // The copy in Redis goes, too.
  await eventually(async () => ((await findCredential(stack.redis, prt, id)) ? undefined : true));
});

test('a bundle loses its document and the authentication of its servers a day after it was revoked', async () => {
  const auth = { auth_type: 'bearer', auth_config: { token: 'tok-1' } };
  const answer = await issueMcp(stack, { servers: [{ ...server, ...auth }] });
  const { session_id } = answer;
  const sent = await send(stack, { method: 'DELETE', path: `/v1/sessions/${session_id}` });
  expect(sent.status).toBe(204);
  const ids = (await credentialsOf(session_id)).map(({ id }) => id);
  const ago = sql`now() - interval '25 hours'`;
  await stack.db.update(credentials).set({ createdAt: ago }).where(inArray(credentials.id, ids));
  await sweep();
  expect(await sealedOf(session_id)).toEqual(['kept', 'kept']);
  await stack.db.update(grants).set({ revokedAt: ago }).where(eq(grants.sessionId, session_id));
  await stack.db.update(sessions).set({ revokedAt: ago }).where(eq(sessions.id, session_id));
  await sweep();
  expect(await sealedOf(session_id)).toEqual(['erased', 'erased']);
});

test("a credential is kept while one of its grants lives, and a virtual key's credential is kept without grants", async () => {
  const { id } = await createVirtualKey(stack);
  const ofKey = await stack.issue({ provider: 'openai', path: least.path, virtual_key: id });
  await age(ofKey.session_id, 9);
  const old = await issue(stack, {});
  const live = await issue(stack, {});
  const [credential] = await credentialsOf(old.session_id);
  // Two grants of one credential.
  await stack.db
    .update(grants)
    .set({ credentialId: credential?.id ?? null })
    .where(and(eq(grants.sessionId, live.session_id), isNull(grants.revokedAt)));
  await age(old.session_id, 9);
  await sweep();
  expect(await sealedOf(old.session_id)).toEqual(['kept']);
  expect(await sealedOf(ofKey.session_id)).toEqual(['kept']);
  const next = await stack.issue({ provider: 'openai', path: least.path, virtual_key: id });
  expect(await keyOf(next.url)).toBe('Bearer sk-first');
});

test('a chain of refresh tokens is erased after 90 days, and the same token then starts another chain', async () => {
  const config = {
    token_url: 'https://id.example.com/token',
    client_id: 'client',
    refresh_token: 'refresh-1',
  };
  const ask = () => issueMcp(stack, { servers: [{ ...server, auth_type: 'oauth', auth_config: config }] });
  const idOf = async (answer: Awaited<ReturnType<typeof ask>>) =>
    (await writtenBundle(stack, answer)).byName('docs').credentials.id;
  const first = await ask();
  const id = await idOf(first);
  await age(first.session_id, 80);
  await sweep();
  expect(await stack.db.$count(oauthTokens, eq(oauthTokens.credentialId, id))).toBe(1);
  await age(first.session_id, 91);
  await sweep();
  expect(await stack.db.$count(oauthTokens, eq(oauthTokens.credentialId, id))).toBe(0);
  expect(await sealedOf(first.session_id)).toEqual(['erased', 'erased']);
  const again = await idOf(await ask());
  expect(again).not.toBe(id);
  const [row] = await stack.db.select().from(credentials).where(eq(credentials.id, again));
  expect(row?.sealed).not.toBe('');
});
