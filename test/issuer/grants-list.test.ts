import { randomUUID } from 'node:crypto';
import { connectRedis } from '@presign/limits';
import { type GrantAnswer, grantAnswer, grantPage, type KeyPolicy } from '@presign/schema';
import { apiKeys, budgets, grants } from '@presign/schema/tables';
import { eq, inArray, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { freePort } from '../harness/free-port.ts';
import { othersWait } from '../harness/others-wait.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { issue, refused, send } from './ask.ts';
import { issueMcp } from './ask-mcp.ts';
import { startOwnIssuer } from './own-issuer.ts';
import { askVirtualKeys, createVirtualKey } from './virtual-keys.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } }));
  });
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

type Of = Pick<Stack, 'issuerUrl' | 'apiKey'>;
type Query = Readonly<Record<string, string | number>>;

/** An account of its own, whose list holds nothing but what a test puts there. */
async function fresh(scopes: readonly string[] = ['presign', 'read']): Promise<Stack & { account: string }> {
  const { id } = await addAccount(stack);
  return { ...stack, account: id, apiKey: await addApiKey(stack, id, { scopes: [...scopes] }) };
}
const get = (of: Of, query: Query = {}) => {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  return send(of, { method: 'GET', path: `/v1/grants?${search}` });
};
async function list(of: Of, query: Query = {}) {
  const sent = await get(of, query);
  expect(sent.status, sent.text).toBe(200);
  return grantPage.parse(JSON.parse(sent.text));
}
const ids = ({ data }: { data: readonly GrantAnswer[] }) => data.map(({ id }) => id);
/** Every page, one after another. */
async function walk(of: Of, query: Query, between: () => Promise<unknown> = async () => {}) {
  const pages: string[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await list(of, { ...query, ...(cursor === '' ? {} : { cursor }) });
    pages.push(ids(page));
    cursor = page.next_cursor;
    await between();
  }
  return pages;
}
const issueMany = async (of: Stack, count: number, fields: object = {}) => {
  const issued = await Promise.all(Array.from({ length: count }, () => issue(of, fields)));
  return issued.map(({ grant_id }) => grant_id);
};
const setGrant = (id: string, fields: Partial<typeof grants.$inferInsert>) =>
  stack.db.update(grants).set(fields).where(eq(grants.id, id));

describe('pages', () => {
  test('hold every URL once over all keys and sessions, newest first, whatever their size', async () => {
    const own = await fresh();
    const keys = await Promise.all(
      Array.from({ length: 3 }, () => addApiKey(stack, own.account, { scopes: ['presign'] })),
    );
    const issued: string[] = [];
    for (const apiKey of [...keys, own.apiKey]) issued.push(...(await issueMany({ ...own, apiKey }, 3)));
    for (const [i, id] of issued.entries())
      await setGrant(id, { issuedAt: new Date(Date.UTC(2026, 0, 1 + (i % 4))) });
    const order = ids(await list(own));
    const times = (await list(own)).data.map(({ issued_at }) => issued_at);
    expect([...times].sort((a, b) => b - a)).toEqual(times);
    expect([...order].sort()).toEqual([...issued].sort());
    for (const limit of [1, 2, 5, 11, 12, 13]) {
      const pages = await walk(own, { limit });
      expect(pages.flat(), String(limit)).toEqual(order);
      expect(pages).toHaveLength(Math.ceil(12 / limit));
    }
  });

  test('hold every URL once, in order, in an account with more keys than are looked at together', async () => {
    const own = await fresh();
    const issued = await issueMany(own, 120);
    const made = issued.map(() => randomUUID());
    const key = { accountId: own.account, name: 'k', hint: 'k', scopes: ['presign'] };
    await stack.db.insert(apiKeys).values(made.map((id) => ({ ...key, id, hash: id })));
    // The oldest ten are of the key of the newest one, and the others have a key each.
    for (const [i, id] of issued.entries())
      await setGrant(id, {
        apiKeyId: made[i < 110 ? i : 0] ?? '',
        issuedAt: new Date(Date.UTC(2026, 0, 1) - i * 1_000),
      });
    for (const limit of [100, 7]) expect((await walk(own, { limit })).flat(), String(limit)).toEqual(issued);
    const revoked = issued.slice(105);
    await stack.db.update(grants).set({ revokedAt: new Date() }).where(inArray(grants.id, revoked));
    for (const limit of [100, 7])
      expect((await walk(own, { limit, status: 'revoked' })).flat(), String(limit)).toEqual(revoked);
  });

  test('do not shift while URLs are issued, and separate those of the same microsecond', async () => {
    const own = await fresh();
    const issued = await issueMany(own, 5);
    await stack.db
      .update(grants)
      .set({ issuedAt: new Date('2026-01-01') })
      .where(inArray(grants.id, issued));
    const before = ids(await list(own));
    expect(before).toEqual([...issued].sort().reverse());
    expect((await walk(own, { limit: 2 }, () => issue(own, {}))).flat()).toEqual(before);
  });

  test('have 20 URLs unless the caller says otherwise', async () => {
    const own = await fresh();
    await issueMany(own, 21);
    expect((await list(own)).data).toHaveLength(20);
  });
});

describe('a filter', () => {
  test('by external ids, session and API key finds the URLs that fit all of them', async () => {
    const own = await fresh();
    const other = await addApiKey(stack, own.account);
    const of = async (fields: object, apiKey = own.apiKey) => issue({ ...own, apiKey }, fields);
    const first = await of({ external_user: 'u1', external_session: 's1' });
    const second = await of({ external_user: 'u1', external_session: 's2' }, other);
    const third = await of({ external_user: 'u2', session_id: second.session_id });
    const bundle = await issueMcp(own, { session_id: first.session_id });
    const { data } = await list(own);
    const keyOf = (id: string) => data.find((grant) => grant.id === id)?.api_key ?? '';
    const found = async (query: Query) => ids(await list(own, query)).sort();
    const [one, two, three] = [first, second, third].map(({ grant_id }) => grant_id) as [
      string,
      string,
      string,
    ];
    const ofBundle = data.filter(({ kind }) => kind !== 'llm').map(({ id }) => id);
    expect(ofBundle.length).toBeGreaterThan(1);
    expect(bundle.session_id).toBe(first.session_id);
    expect(await found({ external_user: 'u1' })).toEqual([one, two].sort());
    expect(await found({ external_session: 's2' })).toEqual([two]);
    expect(await found({ external_user: 'u2', external_session: 's2' })).toEqual([]);
    expect(await found({ external_user: '%' })).toEqual([]);
    expect(await found({ session_id: second.session_id.toUpperCase() })).toEqual([two, three].sort());
    expect(await found({ session_id: first.session_id })).toEqual([one, ...ofBundle].sort());
    expect(await found({ api_key: keyOf(two) })).toEqual([two]);
    expect(await found({ api_key: keyOf(one) })).toEqual([one, three, ...ofBundle].sort());
    expect(await found({ api_key: keyOf(two), external_user: 'u2' })).toEqual([]);
    expect(await found({ session_id: randomUUID() })).toEqual([]);
    expect(await found({ api_key: randomUUID() })).toEqual([]);
  });

  test('by status parts the URLs in four, as each says of itself', async () => {
    const own = await fresh(['admin']);
    const key = await createVirtualKey(own);
    const made = {
      active: await issueMany(own, 2),
      free: await issueMany(own, 1, { max_uses: 2, cost_limit: 0 }),
      exhausted: await issueMany(own, 1, { max_uses: 1 }),
      spent: await issueMany(own, 1, { cost_limit: 5 }),
      expired: await issueMany(own, 1),
      revoked: await issueMany(own, 1),
      ofKey: await issueMany(own, 1, { virtual_key: key.id, client_api_key: undefined }),
    };
    const ofSession = await issue(own, {});
    const setBudget = async ([id = '']: string[], fields: Partial<typeof budgets.$inferInsert>) => {
      const [grant] = await stack.db.select().from(grants).where(eq(grants.id, id));
      await stack.db
        .update(budgets)
        .set(fields)
        .where(eq(budgets.id, grant?.budgetId ?? ''));
    };
    await setBudget(made.exhausted, { used: 1 });
    await setBudget(made.spent, { settledMicrousd: 5 });
    await setGrant(made.expired[0] ?? '', { expiresAt: new Date(Date.now() - 1) });
    await setGrant(made.revoked[0] ?? '', { revokedAt: new Date() });
    await askVirtualKeys(own, 'DELETE', `/${key.id}`);
    await send(own, { method: 'DELETE', path: `/v1/sessions/${ofSession.session_id}` });
    const expected = {
      active: [...made.active, ...made.free],
      exhausted: [...made.exhausted, ...made.spent],
      expired: made.expired,
      revoked: [...made.revoked, ...made.ofKey, ofSession.grant_id],
    };
    const all = await list(own);
    for (const [status, wanted] of Object.entries(expected)) {
      const { data } = await list(own, { status });
      expect(ids({ data }).sort(), status).toEqual([...wanted].sort());
      expect(data).toEqual(all.data.filter((each) => each.status === status));
      expect((await walk(own, { status, limit: 1 })).flat()).toEqual(ids({ data }));
    }
    expect(all.data).toHaveLength(Object.values(expected).flat().length);
  });

  test('by status shows no URL as active that a call has used up but not yet in the ledger', async () => {
    const own = await fresh();
    const { url, grant_id } = await issue(own, { max_uses: 1, external_user: 'just' });
    expect(ids(await list(own, { status: 'active' }))).toEqual([grant_id]);
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(200);
    await callsSettled(stack);
    expect(ids(await list(own, { status: 'exhausted' }))).toEqual([grant_id]);
    const [grant] = await stack.db.select().from(grants).where(eq(grants.id, grant_id));
    // As the ledger was before the call settled, while Redis had counted it.
    await stack.db
      .update(budgets)
      .set({ used: 0 })
      .where(eq(budgets.id, grant?.budgetId ?? ''));
    expect(ids(await list(own, { status: 'active' }))).toEqual([]);
  });
});

const CALL = JSON.stringify({
  model: 'gpt-4o-mini',
  max_tokens: 10,
  messages: [{ role: 'user', content: 'Hi' }],
});

test('an entry is the answer of GET /v1/grants/{id}, with its live figures and the name of its session', async () => {
  const own = await fresh();
  const called = await issue(own, { max_uses: 5, cost_limit: 1_000_000, metadata: { team: 'red' } });
  await issueMcp(own, { max_uses: 3 });
  await issue(own, { session_id: called.session_id, models: ['gpt-4o'] });
  await stack.db.execute(sql`update sessions set name = 'Onboarding' where id = ${called.session_id}`);
  for (let call = 0; call < 2; call++)
    expect((await fetch(called.url, { method: 'POST', body: CALL })).status).toBe(200);
  await callsSettled(stack);
  const sent = await get(own);
  const { data } = grantPage.parse(JSON.parse(sent.text));
  expect(data.length).toBeGreaterThanOrEqual(4);
  for (const entry of data) {
    const one = await send(own, { method: 'GET', path: `/v1/grants/${entry.id}` });
    expect(grantAnswer.parse(JSON.parse(one.text))).toEqual(entry);
  }
  expect(data.find(({ id }) => id === called.grant_id)).toMatchObject({
    ...{ session_id: called.session_id, session_name: 'Onboarding', metadata: { team: 'red' } },
    live: { used: 2, held: 0 },
  });
  expect(data.some(({ session_name: name }) => name === null)).toBe(true);
});

/** Keys of one account, and the keys of another one, by what they see of the URLs that `owner` issued. */
const VIEWERS = [
  ['the key that issued them', { scopes: ['presign', 'read'] }, 'own', 'all'],
  ['another key that may read', { scopes: ['read'] }, 'own', 'all'],
  [
    'a key with a policy that may read',
    { scopes: ['presign', 'read'], policy: { providers: ['openai'] } },
    'own',
    'all',
  ],
  ['an admin', { scopes: ['admin'] }, 'own', 'all'],
  ['a key that may only issue', { scopes: ['presign'] }, 'own', 'forbidden'],
  [
    'a key with a policy that may only issue',
    { scopes: ['presign'], policy: { providers: ['openai'] } },
    'own',
    'forbidden',
  ],
  ['an operator', { scopes: ['operator'] }, 'own', 'forbidden'],
  ['an admin of another account', { scopes: ['admin'] }, 'other', 'none'],
  ['a reader of another account', { scopes: ['read'] }, 'other', 'none'],
] as const;

test.each(VIEWERS)(
  '%s sees of a list what it sees of a session, and never a URL',
  async (name, key, whose, sees) => {
    const own = await fresh();
    const { session_id, grant_id, url } = await issue(own, { external_user: 'user-of-the-owner' });
    const account = whose === 'own' ? own.account : (await addAccount(stack)).id;
    const fields = {
      scopes: [...key.scopes],
      policy: ('policy' in key ? key.policy : null) as KeyPolicy | null,
    };
    const apiKey = name === VIEWERS[0][0] ? own.apiKey : await addApiKey(stack, account, fields);
    const as = { ...stack, apiKey };
    const session = await send(as, { method: 'GET', path: `/v1/sessions/${session_id}` });
    const [{ api_key: issuer } = { api_key: '' }] = (await list(own)).data;
    for (const query of [
      ...[{}, { external_user: 'user-of-the-owner' }, { session_id }, { status: 'active' }],
      { api_key: issuer ?? '' },
    ] as Query[]) {
      const sent = await get(as, query);
      expect(sent.text).not.toContain('v4.public.');
      expect(sent.text).not.toContain(new URL(url).pathname);
      if (sees === 'forbidden') {
        refused(sent, 'forbidden');
        refused(session, 'forbidden');
        continue;
      }
      expect(session.status).toBe(sees === 'all' ? 200 : 404);
      const { data } = grantPage.parse(JSON.parse(sent.text));
      expect(ids({ data }), JSON.stringify(query)).toEqual(sees === 'all' ? [grant_id] : []);
      if (sees === 'all') {
        const [{ session_id: _id, session_name: _name, ...entry } = {} as GrantAnswer] = data;
        expect([entry]).toEqual(JSON.parse(session.text).grants);
      }
    }
  },
);

describe('refused', () => {
  test('are queries that do not mean anything, with the field named', async () => {
    const wrong: [Record<string, string>, string][] = [
      [{ limit: '0' }, 'limit'],
      [{ limit: '101' }, 'limit'],
      [{ status: 'ended' }, 'status'],
      [{ external_user: 'x'.repeat(256) }, 'external_user'],
      [{ external_session: '\0' }, 'external_session'],
      [{ session_id: 'x' }, 'session_id'],
      [{ api_key: 'x' }, 'api_key'],
      [{ cursor: 'x' }, 'cursor'],
      [{ virtual_key: 'vk_1' }, 'virtual_key'],
    ];
    for (const [query, param] of wrong) refused(await get(stack, query), 'invalid_request', param);
    const twice = await send(stack, { method: 'GET', path: '/v1/grants?limit=1&limit=2' });
    refused(twice, 'invalid_request', 'limit');
  });

  test('is no changed cursor, which shows no URL of another account', async () => {
    const [own, other] = [await fresh(), await fresh()];
    const theirs = await issueMany(other, 3);
    await stack.db
      .update(grants)
      .set({ issuedAt: new Date('2026-01-01') })
      .where(inArray(grants.id, theirs));
    await issueMany(own, 3);
    const { next_cursor } = await list(own, { limit: 1 });
    const found = ids(await list(other, { cursor: next_cursor ?? '' }));
    expect(found.sort()).toEqual(theirs.sort());
  });
});

test('without Redis the list has the figures of the ledger alone, as a URL and a session have', async () => {
  const own = await fresh();
  await issueMany(own, 2, { max_uses: 1 });
  const redis = connectRedis(`redis://127.0.0.1:${await freePort()}`, () => {});
  const cutOff = await startOwnIssuer(stack, { redis });
  const as = { ...cutOff, apiKey: own.apiKey };
  const { data } = await list(as);
  expect(data.map(({ live, status }) => [live, status])).toEqual([
    [null, 'active'],
    [null, 'active'],
  ]);
  const one = await send(as, { method: 'GET', path: `/v1/grants/${data[0]?.id}` });
  expect(JSON.parse(one.text)).toEqual(data[0]);
  await cutOff.close();
  redis.disconnect();
});

/** The embedded engine has one connection, which a transaction keeps. */
test.skipIf(process.env.TEST_DATABASE_URL === undefined)(
  'while Postgres does not answer the list is refused as its siblings are, and others are served',
  async () => {
    const own = await fresh();
    const [session = ''] = (await issueMany(own, 1)).map(String);
    const held = stack.db.transaction(async (tx) => {
      await tx.execute(sql`lock table grants in access exclusive mode`);
      const asked = Promise.all([
        get(own),
        get(own, { external_user: 'u' }),
        send(own, { method: 'GET', path: `/v1/grants/${session}` }),
      ]);
      await othersWait(stack, tx, 3);
      expect((await send(own, { method: 'GET', path: '/v1/limits' })).status).toBe(200);
      for (const sent of await asked) refused(sent, 'database_unavailable');
    });
    await held;
    expect((await list(own)).data).toHaveLength(1);
  },
);
