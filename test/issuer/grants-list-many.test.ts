import { type GrantAnswer, grantPage } from '@presign/schema';
import { apiKeys, grants } from '@presign/schema/tables';
import { eq, type SQL, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Account, addAccount, addApiKey } from './accounts.ts';
import { send } from './ask.ts';
import { startOwnIssuer } from './own-issuer.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

type Of = Pick<Stack, 'issuerUrl' | 'apiKey'>;
type Query = Readonly<Record<string, string | number>>;

async function list(of: Of, query: Query = {}) {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const sent = await send(of, { method: 'GET', path: `/v1/grants?${search}` });
  expect(sent.status, sent.text).toBe(200);
  return grantPage.parse(JSON.parse(sent.text));
}
const ids = ({ data }: { data: readonly GrantAnswer[] }) => data.map(({ id }) => id);
/** Every page, one after another. */
async function walk(of: Of, query: Query) {
  const pages: string[][] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await list(of, { ...query, ...(cursor === '' ? {} : { cursor }) });
    pages.push(ids(page));
    cursor = page.next_cursor;
  }
  return pages;
}
describe('in an account with very many URLs', () => {
  const MANY = 30_000;
  const KEYS = 4;
  let account: Account;
  let keys: string[];
  let reader: Of;
  const plans: Plan[] = [];

  /** URLs of a key, the newest of them so long ago. */
  const add = async (count: number, key: string, ago: string, of: { user?: string; ended?: true } = {}) => {
    const rows = await stack.db.execute<{ id: string }>(sql`with made as (
        select gen_random_uuid() as id, gen_random_uuid() as budget, gen_random_uuid() as grant_id,
          now() - ${ago}::interval - n * interval '1 ms' as at from generate_series(1, ${count}::int) n),
      s as (insert into sessions (id, account_id, created_at) select id, ${account.id}::uuid, at from made),
      b as (insert into budgets (id, partition, max_uses) select budget, 0, 10 from made),
      g as (insert into grants (id, account_id, session_id, budget_id, api_key_id, kind, provider, external_user, issued_at, expires_at)
        select grant_id, ${account.id}::uuid, id, budget, ${key}::uuid, 'llm', 'openai', ${of.user ?? null}::text, at,
          case when ${of.ended === true}::boolean then at else now() + interval '1 day' end from made)
      select grant_id::text as id from made order by at desc`);
    return rows.map(({ id }) => id);
  };

  let rare: string[];
  let oldest: string[];
  let expired: string[];
  beforeAll(async () => {
    account = await addAccount(stack);
    for (let key = 1; key < KEYS; key++) await addApiKey(stack, account.id);
    const rows = await stack.db.select().from(apiKeys).where(eq(apiKeys.accountId, account.id));
    keys = rows.map(({ id }) => id);
    for (const key of keys) await add(MANY / KEYS, key, '1 hour', { user: 'busy' });
    rare = await add(2, keys[0] ?? '', '2 hours', { user: 'rare' });
    expired = await add(2, keys[1] ?? '', '3 hours', { user: 'busy', ended: true });
    oldest = await add(1, keys[2] ?? '', '4 hours');
    await stack.db.execute(sql`analyze`);
    const explained = new Proxy(stack.db, { get: (db, name) => explaining(db, name) });
    const issuer = await startOwnIssuer(stack, { db: explained });
    const apiKey = await addApiKey(stack, account.id, { scopes: ['read'] });
    reader = { ...issuer, apiKey };
    return () => issuer.close();
  }, 120_000);

  /** Explains each statement that looks up grants before it runs. */
  const explaining = (db: Stack['db'], name: string | symbol) => {
    const own = Reflect.get(db, name) as unknown;
    if (name !== 'execute') return typeof own === 'function' ? own.bind(db) : own;
    return async (query: SQL) => {
      const [row] = await db.execute(sql`explain (analyze, format json) ${query}`);
      const plan = Object.values(row ?? {})[0];
      const [{ Plan }] = (typeof plan === 'string' ? JSON.parse(plan) : plan) as [{ Plan: Plan }];
      plans.push(Plan);
      return db.execute(query);
    };
  };

  /** How many rows a query reads of the table of grants, and the kinds of its scans. */
  const costOf = async (query: Query) => {
    plans.length = 0;
    const page = await list(reader, query);
    const nodes = plans.flatMap(nodesOf).filter((node) => node['Relation Name'] === 'grants');
    expect(nodes.length).toBeGreaterThan(0);
    const read = nodes.map(
      (node) => node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)),
    );
    return {
      page,
      scans: new Set(nodes.map((node) => node['Node Type'])),
      rows: read.reduce((sum, each) => sum + each, 0),
    };
  };

  test.each([
    ['all', {}, 250],
    ['of one API key', { of: 'key' }, 100],
    ['of a user with few URLs', { external_user: 'rare' }, 10],
    ['of a user with very many', { external_user: 'busy' }, 8_100],
    ['active ones of very many', { status: 'active' }, 8_100],
    ['expired ones', { status: 'expired' }, 10_100],
    ['of a session', { of: 'session' }, 10],
  ] as const)('a page %s reads a bounded number of grants, by indexes', async (_name, asked, most) => {
    const [first] = rare;
    const session = await stack.db
      .select()
      .from(grants)
      .where(eq(grants.id, first ?? ''));
    const { of, ...query } = asked as Query & { of?: string };
    const filter: Query = {
      ...query,
      ...(of === 'key' && { api_key: keys[0] ?? '' }),
      ...(of === 'session' && { session_id: session[0]?.sessionId ?? '' }),
    };
    for (const cursor of [undefined, (await list(reader, { limit: 50 })).next_cursor ?? '']) {
      const { scans, rows } = await costOf({ limit: 20, ...filter, ...(cursor && { cursor }) });
      expect(scans, JSON.stringify(filter)).not.toContain('Seq Scan');
      expect(rows, JSON.stringify(filter)).toBeLessThanOrEqual(most);
    }
  });

  test('rare ones are found behind very many, after pages that are not full', async () => {
    expect(ids(await list(reader, { external_user: 'rare' }))).toEqual(rare);
    const pages = await walk(reader, { status: 'expired', limit: 100 });
    expect(pages.flat()).toEqual(expired);
    expect(pages.length).toBeLessThanOrEqual(2 + MANY / 2_000);
    const all = await walk(reader, { limit: 100 });
    expect(all.flat()).toHaveLength(MANY + 5);
    expect(all.flat().at(-1)).toBe(oldest[0]);
  }, 120_000);
});

type Plan = {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
};
const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
