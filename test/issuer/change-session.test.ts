import { randomUUID } from 'node:crypto';
import { connectRedis, keys } from '@presign/limits';
import { changedSession, LIMIT_NAMES, MCP_LIMIT_NAMES, NO_LIMITS, SESSION_GRANTS_MAX } from '@presign/schema';
import { accounts, audit, budgets, grants } from '@presign/schema/tables';
import { and, eq, gte, inArray } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { claimsOf, issue, refused, type Sent, send } from './ask.ts';
import { EAGER, startOwnIssuer } from './own-issuer.ts';

let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream(answerChat);
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

type To = Pick<Stack, 'issuerUrl' | 'apiKey'>;
const idOf = (url: string) => claimsOf(stack, url).jti;
const seconds = (ahead: number) => Math.floor(Date.now() / 1000) + ahead;
const pathOf = (session: string) => `/v1/sessions/${session}`;
const patch = (session: string, body: object, more: object = {}, to: To = stack): Promise<Sent> =>
  send(to, { method: 'PATCH', path: pathOf(session), body, ...more });
/** A change that must succeed. */
const change = async (session: string, body: object) => {
  const sent = await patch(session, body);
  expect(sent.status, sent.text).toBe(200);
  const changed = changedSession.parse(JSON.parse(sent.text));
  expect(sent.headers.get('etag')).toBe(`"${changed.revision}"`);
  return changed;
};
const read = async (id: string) => {
  const sent = await send(stack, { method: 'GET', path: `/v1/grants/${id}` });
  return JSON.parse(sent.text) as { revision: number; max_uses: number; status: string; expires_at: number };
};
const revoke = (path: string) => send(stack, { method: 'DELETE', path });

/** A session with some URLs. */
async function session(...urls: object[]) {
  const session_id = randomUUID();
  const issued = await Promise.all(urls.map((fields) => issue(stack, { session_id, ...fields })));
  return { session_id, urls: issued.map(({ url }) => url), ids: issued.map(({ url }) => idOf(url)) };
}

const SERVERS = ['one', 'two'].map((name) => ({
  name,
  url: 'https://mcp.example.com/',
  transport: 'http',
}));
const issueBundle = async (session_id: string) =>
  (await stack.issueMcp({ session_id, servers: SERVERS })).grant_id;

/** Calls a URL through a gateway: `ok`, or the code of the refusal. */
async function call(url: string, gateway = 0): Promise<string> {
  const at = url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
  const body = JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 100, messages: [] });
  const answer = await fetch(at, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return ((await answer.json()) as { error?: { code: string } }).error?.code ?? 'ok';
}
const callAll = (urls: readonly string[], gateway = 0) => Promise.all(urls.map((url) => call(url, gateway)));

describe('a change of all URLs of a session', () => {
  test('raises spent URLs and a bundle on every gateway, and no URL of another session', async () => {
    const { session_id, urls, ids } = await session({ max_uses: 1 }, { max_uses: 1 });
    const other = await session({ max_uses: 1 });
    const bundle = await issueBundle(session_id);
    expect(await callAll([...urls, ...other.urls])).toEqual(['ok', 'ok', 'ok']);
    expect(await callAll([...urls, ...other.urls], 1)).toEqual(Array(3).fill('uses_exhausted'));
    const { changed, name, revision } = await change(session_id, { name: 'chat', grants: { max_uses: 2 } });
    expect([name, revision]).toEqual(['chat', 2]);
    expect(changed).toEqual([...ids, bundle].sort().map((id) => ({ id, url: null })));
    expect(await callAll([...urls, ...other.urls])).toEqual(['ok', 'ok', 'uses_exhausted']);
    expect(await callAll(urls, 1)).toEqual(['uses_exhausted', 'uses_exhausted']);
    for (const id of [...ids, bundle]) expect(await read(id)).toMatchObject({ max_uses: 2, revision: 2 });
    expect(await read(other.ids[0] ?? '')).toMatchObject({ max_uses: 1, revision: 1 });
  });

  test('shortens all, and extends them beyond their tokens with a new URL for each', async () => {
    const { session_id, urls, ids } = await session({ expires_in: 600 }, { expires_in: 900 });
    const near = seconds(300);
    const shortened = await change(session_id, { grants: { expires_at: near } });
    expect(shortened.changed.map(({ url }) => url)).toEqual([null, null]);
    expect(shortened.expires_at).toBe(near);
    const end = seconds(3_600);
    const { changed } = await change(session_id, { grants: { expires_at: end, max_uses: 1 } });
    expect(changed.map(({ id }) => id)).toEqual([...ids].sort());
    const next = changed.map(({ url }) => url ?? '');
    for (const url of urls) expect(next).not.toContain(url);
    expect(next.map((url) => claimsOf(stack, url).exp)).toEqual(
      Array(2).fill(new Date(end * 1000).toISOString()),
    );
    expect(await callAll(next)).toEqual(['ok', 'ok']);
    // The old URLs draw on the same limits.
    expect(await callAll(urls, 1)).toEqual(['uses_exhausted', 'uses_exhausted']);
    const again = await change(session_id, { grants: { expires_at: end } });
    expect(again.changed).toEqual(changed);
  });

  test('leaves ended URLs unchanged, and is refused if no URL is live', async () => {
    const short = { max_uses: 5, expires_in: 1 };
    const { session_id, urls, ids } = await session({ max_uses: 5 }, short, { max_uses: 5 });
    const [revoked = '', expired = '', live = ''] = ids;
    await revoke(`/v1/grants/${revoked}`);
    await eventually(async () => (await read(expired)).status === 'expired');
    const { changed } = await change(session_id, { grants: { max_uses: 9, expires_at: seconds(900) } });
    expect(changed.map(({ id }) => id)).toEqual([live]);
    expect(await read(revoked)).toMatchObject({ max_uses: 5, status: 'revoked', revision: 1 });
    expect(await read(expired)).toMatchObject({ max_uses: 5, status: 'expired', revision: 1 });
    expect(await callAll(urls)).toEqual(['grant_revoked', 'token_expired', 'ok']);
    await revoke(pathOf(session_id));
    refused(await patch(session_id, { name: 'x', grants: { max_uses: 7 } }), 'grant_ended');
    expect((await change(session_id, { name: 'over' })).changed).toEqual([]);
    expect(await read(live)).toMatchObject({ max_uses: 9, status: 'revoked' });
  });

  test.each(LIMIT_NAMES)('sets %s of all URLs, or of no URL if one cannot have it', async (name) => {
    const { session_id, ids } = await session({}, {});
    const [id = ''] = ids;
    await change(session_id, { grants: { [name]: 3 } });
    for (const each of ids) expect(await read(each)).toMatchObject({ [name]: 3, revision: 2 });
    const bundle = await issueBundle(session_id);
    const sent = await patch(session_id, { name: 'no', grants: { [name]: 4 } });
    const fits = (MCP_LIMIT_NAMES as string[]).includes(name);
    if (fits) expect(sent.status, sent.text).toBe(200);
    else expect(refused(sent, 'invalid_request', `grants.${name}`)).toContain(bundle);
    expect(await read(id)).toMatchObject({ [name]: fits ? 4 : 3, revision: fits ? 3 : 2 });
  });

  test('that one URL refuses changes no URL, and names the field and the URL', async () => {
    const { session_id, urls, ids } = await session({ max_uses: 5 });
    const bundle = await issueBundle(session_id);
    const sent = await patch(session_id, { name: 'no', grants: { max_uses: 0, expires_at: seconds(9_000) } });
    expect(refused(sent, 'invalid_request', 'grants.expires_at')).toContain(bundle);
    expect(await read(ids[0] ?? '')).toMatchObject({ max_uses: 5, revision: 1 });
    expect(await callAll(urls)).toEqual(['ok']);
    const got = await send(stack, { method: 'GET', path: pathOf(session_id) });
    expect(JSON.parse(got.text)).toMatchObject({ name: null, revision: 1 });
    for (const [param, body] of [
      ['grants.max_uses', { grants: { max_uses: -2 } }],
      ['grants.external_user', { grants: { external_user: 'x' } }],
      ['grants', { grants: {} }],
      ['max_uses', { max_uses: 5 }],
    ] as const)
      refused(await patch(session_id, body), 'invalid_request', param);
  });

  test("obeys its API key's policy and scope, its account's limit, and its revision", async () => {
    const { session_id, ids } = await session({ max_uses: 5 }, { max_uses: 3 });
    const account = await ownAccount(stack);
    const policy = { required: ['max_uses'] } as never;
    const apiKey = await addApiKey(stack, account, { policy, scopes: ['presign', 'read'] });
    const raise = await patch(session_id, { grants: { max_uses: 4 } }, { apiKey });
    expect(refused(raise, 'policy_forbids', 'grants.max_uses')).toContain(ids[1]);
    expect(await read(ids[0] ?? '')).toMatchObject({ max_uses: 5, revision: 1 });
    const lower = { grants: { max_uses: 2 } };
    expect((await patch(session_id, lower, { apiKey, headers: { 'if-match': '"1"' } })).status).toBe(200);
    refused(
      await patch(session_id, lower, { headers: { 'if-match': '"1"' } }),
      'revision_mismatch',
      'If-Match',
    );
    // The same values again are no change.
    expect((await change(session_id, lower)).revision).toBe(2);
    const reader = await addApiKey(stack, account, { scopes: ['read'] });
    refused(await patch(session_id, lower, { apiKey: reader }), 'forbidden');
    const stranger = await addAccount(stack);
    refused(await patch(session_id, lower, { apiKey: stranger.apiKey }), 'not_found');
    await stack.db
      .update(accounts)
      .set({ limits: { ...NO_LIMITS, cost_limit: 10 } })
      .where(eq(accounts.id, stranger.id));
    const theirs = randomUUID();
    await issue({ ...stack, apiKey: stranger.apiKey }, { session_id: theirs, cost_limit: 5 });
    const costly = await patch(theirs, { grants: { cost_limit: 11 } }, { apiKey: stranger.apiKey });
    refused(costly, 'account_limit', 'grants.cost_limit');
  });

  test(`is for at most ${SESSION_GRANTS_MAX} live URLs`, async () => {
    const { session_id, ids } = await session(...Array<object>(SESSION_GRANTS_MAX).fill({ max_uses: 5 }));
    const { changed } = await change(session_id, { grants: { max_uses: 6, expires_at: seconds(7_000) } });
    expect(changed.map(({ id }) => id)).toEqual(ids.toSorted());
    expect(new Set(changed.map(({ url }) => url)).size).toBe(SESSION_GRANTS_MAX);
    const more = await issue(stack, { session_id, max_uses: 5 });
    refused(await patch(session_id, { grants: { max_uses: 7 } }), 'invalid_request', 'grants');
    expect(await read(ids[0] ?? '')).toMatchObject({ max_uses: 6, revision: 2 });
    await revoke(`/v1/grants/${idOf(more.url)}`);
    expect((await change(session_id, { grants: { max_uses: 7 } })).changed).toHaveLength(SESSION_GRANTS_MAX);
  });

  test('writes an audit entry for the session and one for each URL', async () => {
    const { session_id, ids } = await session({ max_uses: 5 }, { max_uses: 6 });
    await change(session_id, { grants: { max_uses: 7, metadata: { secret: 'sk-in-metadata' } } });
    const rows = await stack.db
      .select()
      .from(audit)
      .where(inArray(audit.targetId, [session_id, ...ids]));
    const found = rows.map(({ action, targetId, before, after }) => ({ action, targetId, before, after }));
    expect(found).toHaveLength(3);
    expect(found).toContainEqual({
      ...{ action: 'session.changed', targetId: session_id },
      ...{ before: { name: null }, after: { name: null, urls: 2 } },
    });
    for (const [i, id] of ids.entries())
      expect(found.find(({ targetId }) => targetId === id)).toMatchObject({
        ...{ action: 'grant.changed', before: { max_uses: 5 + i } },
        after: { max_uses: 7, metadata: 'changed' },
      });
    expect(JSON.stringify(rows)).not.toContain('sk-in-metadata');
  });

  test('answers 202 when Redis is down, and takes effect without a retry', async () => {
    const { session_id, urls } = await session({ max_uses: 9 }, { max_uses: 9 });
    expect(await callAll(urls)).toEqual(['ok', 'ok']);
    const redis = connectRedis(`redis://127.0.0.1:${await freePort()}`, () => {});
    const cutOff = await startOwnIssuer(stack, { redis });
    const sent = await patch(session_id, { grants: { max_uses: 1 } }, {}, cutOff);
    expect([sent.status, sent.text]).toEqual([202, '{"status":"pending"}']);
    for (const url of urls) await eventually(async () => (await call(url)) === 'uses_exhausted');
    await cutOff.close();
    redis.disconnect();
  });
});

test('simultaneous changes of a session and its URLs, revocations, calls and new URLs end in the same state everywhere', async () => {
  const { session_id, urls, ids } = await session(...Array<object>(6).fill({ max_uses: 1_000 }));
  const statuses = new Set<number>();
  const ask = async (asked: Promise<Sent>) => statuses.add((await asked).status);
  const rounds = Array.from({ length: 4 }, (_, i) => i);
  await Promise.all([
    ...rounds.map((i) => ask(patch(session_id, { grants: { max_uses: 100 + i } }))),
    ...rounds.map((i) => ask(patch(session_id, { name: `name ${i}` }))),
    ...ids.map((id, i) =>
      ask(send(stack, { method: 'PATCH', path: `/v1/grants/${id}`, body: { max_uses: 200 + i } })),
    ),
    ...ids.slice(0, 2).map((id) => ask(revoke(`/v1/grants/${id}`))),
    ...rounds.map(() => issue(stack, { session_id, max_uses: 1_000 })),
    ...rounds.map(() => callAll(urls)),
  ]);
  // 409: the change of a URL that was revoked before.
  for (const status of statuses) expect([200, 204, 409]).toContain(status);
  await change(session_id, { grants: { max_uses: 50 } });
  const live = await stack.db
    .select()
    .from(budgets)
    .innerJoin(grants, eq(grants.budgetId, budgets.id))
    .where(and(eq(grants.sessionId, session_id), gte(grants.expiresAt, new Date())));
  expect(live).toHaveLength(10);
  for (const { budgets: budget, grants: grant } of live) {
    if (grant.revokedAt !== null) continue;
    expect(budget.maxUses).toBe(50);
    const inRedis = await stack.redis.hget(keys.budget(budget.partition, budget.id), 'revision');
    // A URL that has had no call has only a stub of its limits.
    if (inRedis !== null) expect(Number(inRedis)).toBe(budget.revision);
  }
});
