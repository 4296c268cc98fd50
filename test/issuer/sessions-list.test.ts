import { type SessionSummary, sessionPage } from '@presign/schema';
import { budgets, grants, sessions } from '@presign/schema/tables';
import { eq, inArray, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Account, addAccount, addApiKey } from './accounts.ts';
import { claimsOf, issue, least, refused, send } from './ask.ts';
import { issueMcp } from './ask-mcp.ts';
import { askVirtualKeys, createVirtualKey } from './virtual-keys.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: { openai: { base_url: 'http://127.0.0.1:9' } } });
});
afterAll(() => stack.close());

/** An account of its own, whose list holds nothing but what a test puts there. */
async function fresh(scopes = ['presign', 'read']): Promise<Stack> {
  const { id } = await addAccount(stack);
  return { ...stack, apiKey: await addApiKey(stack, id, { scopes }) };
}
const get = (of: Pick<Stack, 'issuerUrl' | 'apiKey'>, query: Record<string, string | number> = {}) => {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  return send(of, { method: 'GET', path: `/v1/sessions?${search}` });
};
async function list(of: Stack, query: Record<string, string | number> = {}) {
  const sent = await get(of, query);
  expect(sent.status, sent.text).toBe(200);
  return sessionPage.parse(JSON.parse(sent.text));
}
const ids = ({ data }: { data: readonly SessionSummary[] }) => data.map(({ id }) => id);
const issueMany = async (of: Stack, count: number) => {
  const issued = await Promise.all(Array.from({ length: count }, () => issue(of, {})));
  return issued.map(({ session_id }) => session_id);
};
/** Every page, one after another. */
async function walk(
  of: Stack,
  limit: number,
  query: Record<string, string> = {},
  between: () => Promise<unknown> = async () => {},
) {
  const pages: string[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await list(of, { limit, ...query, ...(cursor === '' ? {} : { cursor }) });
    pages.push(ids(page));
    cursor = page.next_cursor;
    await between();
  }
  return pages;
}
const setCreatedAt = (id: string, at: string) =>
  stack.db
    .update(sessions)
    .set({ createdAt: new Date(at) })
    .where(eq(sessions.id, id));

describe('pages', () => {
  test('have every session once, newest first, at any page size', async () => {
    const own = await fresh();
    const issued = await issueMany(own, 7);
    for (const [i, id] of issued.entries())
      await setCreatedAt(id, `2026-01-0${1 + (i % 3)}T00:00:00.00${i}Z`);
    const order = ids(await list(own));
    const times = (await list(own)).data.map(({ created_at }) => created_at);
    expect([...times].sort((a, b) => b - a)).toEqual(times);
    expect([...order].sort()).toEqual([...issued].sort());
    for (const limit of [1, 2, 3, 6, 7, 8]) {
      const pages = await walk(own, limit);
      expect(pages.flat()).toEqual(order);
      expect(pages).toHaveLength(Math.ceil(7 / limit));
    }
  });

  test('separate sessions of the same moment or millisecond', async () => {
    const own = await fresh();
    const issued = await issueMany(own, 6);
    for (const [i, id] of issued.entries()) {
      const at = i < 3 ? '2026-01-01T00:00:00Z' : `2026-01-01T00:00:00.00100${i}Z`;
      await stack.db.execute(`update sessions set created_at = '${at}' where id = '${id}'`);
    }
    const order = (await walk(own, 1)).flat();
    expect(order.slice(0, 3)).toEqual([issued[5], issued[4], issued[3]]);
    expect([...order].sort()).toEqual([...issued].sort());
  });

  test('do not shift while sessions are created', async () => {
    const own = await fresh();
    const issued = await issueMany(own, 5);
    await stack.db
      .update(sessions)
      .set({ createdAt: new Date('2026-01-01') })
      .where(inArray(sessions.id, issued));
    const before = ids(await list(own));
    const opened = async () => {
      const { session_id } = await issue(own, {});
      await setCreatedAt(session_id, '2026-01-02');
    };
    expect((await walk(own, 2, {}, opened)).flat()).toEqual(before);
  });

  test('have 20 sessions by default', async () => {
    const own = await fresh();
    await issueMany(own, 21);
    expect((await list(own)).data).toHaveLength(20);
  });
});

describe('a filter', () => {
  test('by external ids finds the sessions that have such a grant', async () => {
    const own = await fresh();
    const of = async (fields: object) => (await issue(own, fields)).session_id;
    const first = await of({ external_user: 'u1', external_session: 's1' });
    const second = await of({ external_user: 'u1', external_session: 's2' });
    const third = await of({ external_user: 'u2' });
    await issue(own, { external_user: 'u2', session_id: second });
    await issue(own, {});
    const found = async (query: Record<string, string>) => ids(await list(own, query)).sort();
    expect(await found({ external_user: 'u1' })).toEqual([first, second].sort());
    expect(await found({ external_user: 'u2' })).toEqual([second, third].sort());
    expect(await found({ external_session: 's2' })).toEqual([second]);
    expect(await found({ external_user: 'u1', external_session: 's1' })).toEqual([first]);
    // No grant has both.
    expect(await found({ external_user: 'u2', external_session: 's2' })).toEqual([]);
    expect(await found({ external_user: '%' })).toEqual([]);
  });

  test("by status divides the sessions in two, in agreement with each session's own status", async () => {
    const own = await fresh();
    const grantOf = (url: string) => claimsOf(stack, url).jti;
    const ended = await Promise.all([
      issue(own, {}),
      issue(own, {}),
      issue(own, { max_uses: 1 }),
      issue(own, { cost_limit: 5 }),
    ]);
    const [expired, revoked, used, spent] = ended.map(({ url }) => grantOf(url)) as [
      string,
      string,
      string,
      string,
    ];
    const setGrant = (id: string, fields: Partial<typeof grants.$inferInsert>) =>
      stack.db.update(grants).set(fields).where(eq(grants.id, id));
    const setBudget = async (id: string, fields: Partial<typeof budgets.$inferInsert>) => {
      const [grant] = await stack.db.select().from(grants).where(eq(grants.id, id));
      await stack.db
        .update(budgets)
        .set(fields)
        .where(eq(budgets.id, grant?.budgetId ?? ''));
    };
    await setGrant(expired, { expiresAt: new Date(Date.now() - 1) });
    await setGrant(revoked, { revokedAt: new Date() });
    await setBudget(used, { used: 1 });
    await setBudget(spent, { settledMicrousd: 5 });
    const gone = await issue(own, {});
    await stack.db.update(sessions).set({ revokedAt: new Date() }).where(eq(sessions.id, gone.session_id));
    const live = [
      await issue(own, {}),
      await issue(own, { max_uses: 2, cost_limit: 0 }),
      await issue(own, { session_id: ended[0].session_id }),
    ];
    const active = await list(own, { status: 'active' });
    const rest = await list(own, { status: 'ended' });
    expect(ids(active).sort()).toEqual(live.map(({ session_id }) => session_id).sort());
    expect(ids(rest).sort()).toEqual([...ended.slice(1), gone].map(({ session_id }) => session_id).sort());
    expect(new Set(active.data.map(({ status }) => status))).toEqual(new Set(['active']));
    expect(new Set(rest.data.map(({ status }) => status))).toEqual(new Set(['ended']));
    const all = await list(own);
    expect(ids(all).sort()).toEqual([...ids(active), ...ids(rest)].sort());
    for (const { id, status } of all.data) {
      const one = await send(own, { method: 'GET', path: `/v1/sessions/${id}` });
      expect(JSON.parse(one.text)).toMatchObject({ id, status });
    }
  });

  test('by status active finds no session whose grants belong to a deleted virtual key', async () => {
    const own = await fresh(['admin']);
    const key = await createVirtualKey(own);
    const { session_id: id } = await issue(own, { virtual_key: key.id });
    expect(ids(await list(own, { status: 'active' }))).toEqual([id]);
    await askVirtualKeys(own, 'DELETE', `/${key.id}`);
    expect(ids(await list(own, { status: 'active' }))).toEqual([]);
    expect(ids(await list(own, { status: 'ended' }))).toEqual([id]);
    const one = await send(own, { method: 'GET', path: `/v1/sessions/${id}` });
    expect(JSON.parse(one.text)).toMatchObject({ status: 'ended', grants: [{ status: 'revoked' }] });
  });

  test('is kept over pages', async () => {
    const own = await fresh();
    for (let i = 0; i < 4; i++) await issue(own, { external_user: `u${i % 2}` });
    const first = await list(own, { external_user: 'u1', limit: 1 });
    const second = await list(own, { external_user: 'u1', limit: 1, cursor: first.next_cursor ?? '' });
    expect(new Set([...ids(first), ...ids(second)]).size).toBe(2);
    expect(second.next_cursor).toBeNull();
  });
});

describe('a filter by status in an account with very many sessions', () => {
  /** Sessions with one grant each, the newest of them so long ago. Returns their ids. */
  const add = async (
    of: Account,
    count: number,
    ago: string,
    kind: { used?: number; revoked?: true } = {},
  ) => {
    const rows = await stack.db.execute<{ id: string }>(sql`with made as (
        select gen_random_uuid() as id, gen_random_uuid() as budget, gen_random_uuid() as grant_id,
          now() - ${ago}::interval - n * interval '1 ms' as at from generate_series(1, ${count}::int) n),
      s as (insert into sessions (id, account_id, created_at) select id, ${of.id}::uuid, at from made),
      b as (insert into budgets (id, partition, max_uses, used) select budget, 0, 10, ${kind.used ?? 0}::int from made),
      g as (insert into grants (id, account_id, session_id, budget_id, kind, provider, issued_at, expires_at, revoked_at)
        select grant_id, ${of.id}::uuid, id, budget, 'llm', 'openai', at, now() + interval '1 day',
          case when ${kind.revoked === true}::boolean then at end from made)
      select id::text as id from made order by at desc`);
    return rows.map(({ id }) => id);
  };
  const pagesOf = async (of: Account, status: string) =>
    walk({ ...stack, apiKey: await addApiKey(stack, of.id, { scopes: ['read'] }) }, 3, { status });

  test('finds the oldest ended sessions behind 4,000 active ones, after empty pages', async () => {
    const account = await addAccount(stack);
    await add(account, 4_000, '1 hour');
    const old = await add(account, 5, '2 hours', { used: 10 });
    expect(await pagesOf(account, 'ended')).toEqual([[], [], old.slice(0, 3), old.slice(3)]);
  });

  test('finds the oldest active sessions behind 4,000 used-up ones, after partly filled pages', async () => {
    const account = await addAccount(stack);
    const [newest] = await add(account, 1, '1 minute');
    await add(account, 4_000, '1 hour', { used: 10 });
    const old = await add(account, 5, '2 hours');
    expect(await pagesOf(account, 'active')).toEqual([[newest], [], old.slice(0, 3), old.slice(3)]);
  });

  test('finds the oldest active sessions behind 4,000 revoked ones, at once', async () => {
    const account = await addAccount(stack);
    await add(account, 4_000, '1 hour', { revoked: true });
    const old = await add(account, 5, '2 hours');
    expect(await pagesOf(account, 'active')).toEqual([old.slice(0, 3), old.slice(3)]);
  });
});

test('a session shows how many grants it has, their external ids, and when the last one expires', async () => {
  const own = await fresh();
  const { session_id } = await issue(own, { external_user: 'b', external_session: 's', expires_in: 60 });
  await issue(own, { session_id, external_user: 'a' });
  const last = await issue(own, { session_id, external_user: 'b', expires_in: 7200 });
  await issueMcp(own, { session_id });
  const [told] = (await list(own)).data;
  expect(told).toMatchObject({
    id: session_id,
    revoked_at: null,
    status: 'active',
    grant_count: 5,
    expires_at: last.expires_at,
    external_sessions: ['s'],
    external_users: ['a', 'b'],
  });
});

describe('a refused request', () => {
  test('has a query without meaning, and the error names the field', async () => {
    const wrong: [Record<string, string>, string][] = [
      [{ limit: '0' }, 'limit'],
      [{ limit: '101' }, 'limit'],
      [{ limit: '1.5' }, 'limit'],
      [{ limit: '' }, 'limit'],
      [{ status: 'revoked' }, 'status'],
      [{ external_user: 'x'.repeat(256) }, 'external_user'],
      [{ external_user: '\0' }, 'external_user'],
      [{ external_usr: 'x' }, 'external_usr'],
    ];
    for (const [query, param] of wrong) refused(await get(stack, query), 'invalid_request', param);
    const twice = await send(stack, { method: 'GET', path: '/v1/sessions?limit=1&limit=2' });
    refused(twice, 'invalid_request', 'limit');
  });

  test('has an invalid cursor; a changed cursor shows no session of another account', async () => {
    const [own, other] = [await fresh(), await fresh()];
    await issueMany(own, 3);
    const theirs = await issueMany(other, 3);
    const { next_cursor } = await list(own, { limit: 1 });
    const cursor = next_cursor ?? '';
    for (const bad of [
      '',
      'x',
      `${cursor}=`,
      ` ${cursor}`,
      btoa("1.' or 1=1 --"),
      btoa(`${'1'.repeat(30)}.x`),
    ]) {
      refused(await get(own, { cursor: bad }), 'invalid_request', 'cursor');
    }
    const flipped = [...cursor].map(
      (_, i) => cursor.slice(0, i) + (cursor[i] === 'A' ? 'B' : 'A') + cursor.slice(i + 1),
    );
    for (const each of flipped) {
      const sent = await get(own, { cursor: each });
      expect([200, 400]).toContain(sent.status);
      for (const id of theirs) expect(sent.text).not.toContain(id);
    }
    expect(ids(await list(other, { cursor })).every((id) => theirs.includes(id))).toBe(true);
  });

  test('comes from a key without the scope read; the list never has sessions of another account', async () => {
    const other: Account = await addAccount(stack);
    refused(await get({ ...stack, apiKey: other.apiKey }), 'forbidden');
    const { session_id } = await issue(stack, least);
    const reader = await addApiKey(stack, other.id, { scopes: ['read'] });
    expect((await get({ ...stack, apiKey: reader })).text).not.toContain(session_id);
  });
});
