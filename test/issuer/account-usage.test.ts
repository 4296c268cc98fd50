import { randomUUID } from 'node:crypto';
import type { AccountUsageAnswer, ListedAccount } from '@presign/schema';
import { usageMarks } from '@presign/schema/ledger-tables';
import { eq, type SQL, sql } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { othersWait } from '../harness/others-wait.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addApiKey } from './accounts.ts';
import { least, refused, send } from './ask.ts';
import { addToLedger, fresh, type Reader, row } from './ask-usage.ts';
import { startOwnIssuer } from './own-issuer.ts';
import { sumAll } from './sweeps.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

/** A moment of the month that is some months from this one, in UTC. */
function inMonth(plus: number, day = 1, hour = 0): Date {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + plus, day, hour));
}

const list = async (query: string) => {
  const sent = await send(stack, { method: 'GET', path: `/v1/accounts?${query}` });
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as { data: ListedAccount[]; next_cursor: string | null };
};

async function usageOf(id: string): Promise<AccountUsageAnswer> {
  const sent = await send(stack, { method: 'GET', path: `/v1/accounts/${id}/usage` });
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as AccountUsageAnswer;
}

/** Two calls of this month, three of the month before, and one of the month before that. */
const calls = (of: Reader) =>
  [
    [inMonth(0), 5],
    [new Date(inMonth(0).getTime() + 1), 7],
    [inMonth(-1), 11],
    [inMonth(-1, 14, 13), 13],
    [new Date(inMonth(0).getTime() - 1), 17],
    [new Date(inMonth(-1).getTime() - 1), 1_000],
  ].map(([settledAt, costMicrousd]) =>
    row(of, { settledAt: settledAt as Date, costMicrousd: costMicrousd as number }),
  );

const MONTHS = [
  { calls: 2, cost: 12 },
  { calls: 3, cost: 41 },
] as const;

test('an operator sees the monthly sums of an account, whether they are stored by call or by day', async () => {
  const of = await fresh(stack);
  const other = await fresh(stack);
  await addToLedger(stack, [...calls(of), row(other, { settledAt: inMonth(0), costMicrousd: 99 })]);
  for (const summed of [false, true]) {
    if (summed) await sumAll(stack, Date.now() + 3 * 3_600_000);
    const usage = await usageOf(of.account);
    expect(usage.this_month, String(summed)).toMatchObject(MONTHS[0]);
    expect(usage.last_month, String(summed)).toMatchObject(MONTHS[1]);
    expect(usage.last_month?.to).toBe(usage.this_month.from);
    expect(usage.last_call_at).toBe(inMonth(0).getTime() / 1000);
  }
  await stack.db.update(usageMarks).set({ sumsFrom: inMonth(0) });
  expect(await usageOf(of.account)).toMatchObject({ this_month: MONTHS[0], last_month: null });
});

test('an account without a call has sums of 0, and counts its live URLs and keys', async () => {
  const { account } = await fresh(stack);
  const apiKey = await addApiKey(stack, account, { scopes: ['presign'] });
  await addApiKey(stack, account, { revokedAt: new Date() });
  await addApiKey(stack, account, { expiresAt: new Date(0) });
  const issue = () => send(stack, { body: least, apiKey });
  const [first] = [await issue(), await issue()];
  const none = { calls: 0, cost: 0 };
  const all = { this_month: none, last_month: none, last_call_at: null };
  expect(await usageOf(account)).toMatchObject({ ...all, live_api_keys: 3, live_urls: 2 });
  const { session_id: session } = JSON.parse(first.text) as { session_id: string };
  await send(stack, { method: 'DELETE', path: `/v1/sessions/${session}`, apiKey });
  expect(await usageOf(account)).toMatchObject({ live_urls: 1 });
});

test("an unknown account is 404, and an account's admin may not read its usage here", async () => {
  const of = await fresh(stack);
  const path = (id: string) => ({ method: 'GET', path: `/v1/accounts/${id}/usage` });
  refused(await send(stack, path(randomUUID())), 'not_found');
  const admin = await addApiKey(stack, of.account, { scopes: ['admin'] });
  refused(await send(stack, { ...path(of.account), apiKey: admin }), 'forbidden');
});

/** A database that notes the statements of its transactions. */
const watched = (db: Stack['db'], seen: string[]): Stack['db'] =>
  new Proxy(db, {
    get: (of, name) => {
      const own = Reflect.get(of, name) as unknown;
      if (typeof own !== 'function') return own;
      if (name !== 'transaction') return own.bind(of);
      return (run: (tx: object) => unknown, config: unknown) =>
        own.call(of, (tx: Stack['db']) => run(noting(tx, seen)), config);
    },
  });
const noting = (tx: Stack['db'], seen: string[]) =>
  new Proxy(tx, {
    get: (of, name) => {
      const own = Reflect.get(of, name) as unknown;
      if (typeof own !== 'function') return own;
      if (name !== 'execute') return own.bind(of);
      return (query: SQL) => {
        seen.push(new PgDialect().sqlToQuery(query).sql);
        return own.call(of, query);
      };
    },
  });

describe('the list of accounts', () => {
  test('has what each account uses if it is asked for, as each is asked for by itself, on every page', async () => {
    const [busy, late, idle] = [await fresh(stack), await fresh(stack), await fresh(stack)];
    await addToLedger(stack, [...calls(busy), row(late, { settledAt: inMonth(-1), costMicrousd: 3 })]);
    await sumAll(stack, Date.now() + 3 * 3_600_000);
    // One has calls that are not summed yet, and the last month of another is deleted.
    await addToLedger(stack, [row(late, { settledAt: new Date(), costMicrousd: 5 })]);
    const moved = { summedUntil: inMonth(0) };
    await stack.db.update(usageMarks).set(moved).where(eq(usageMarks.accountId, late.account));
    await stack.db
      .update(usageMarks)
      .set({ sumsFrom: inMonth(0) })
      .where(eq(usageMarks.accountId, busy.account));
    await addApiKey(stack, idle.account, { scopes: ['presign'] });
    const apiKey = await addApiKey(stack, busy.account);
    for (let url = 0; url < 2; url++) await send(stack, { body: least, apiKey });
    const all: ListedAccount[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await list(`include=usage&limit=2${cursor && `&cursor=${cursor}`}`);
      all.push(...page.data);
      cursor = page.next_cursor;
    }
    const usages = new Map(all.map(({ id, usage }) => [id, usage]));
    expect(usages.get(busy.account)).toMatchObject({ this_month: MONTHS[0], last_month: null, live_urls: 2 });
    expect(usages.get(late.account)).toMatchObject({
      this_month: { calls: 1, cost: 5 },
      last_month: { calls: 1, cost: 3 },
    });
    expect(usages.get(idle.account)).toMatchObject({ this_month: { calls: 0, cost: 0 }, live_api_keys: 3 });
    for (const { id, usage } of all) {
      const { this_month: month, ...one } = await usageOf(id);
      expect(usage, id).toMatchObject({ ...one, this_month: { calls: month.calls, cost: month.cost } });
    }
    const plain = await list('limit=100');
    expect(plain.data.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    expect(plain.data.some((account) => 'usage' in account)).toBe(false);
  });

  test('reads the figures of a page in one statement, however many accounts it has', async () => {
    for (let account = 0; account < 3; account++) await fresh(stack);
    const seen: string[] = [];
    const issuer = await startOwnIssuer(stack, { db: watched(stack.db, seen) });
    const ask = async (limit: number) => {
      seen.length = 0;
      const sent = await send(issuer, { method: 'GET', path: `/v1/accounts?include=usage&limit=${limit}` });
      expect(sent.status, sent.text).toBe(200);
      return seen.filter((statement) => statement.includes('days_of_current')).length;
    };
    expect([await ask(1), await ask(3), await ask(100)]).toEqual([1, 1, 1]);
    await issuer.close();
  });

  test('refuses what it cannot include, and whoever is no operator', async () => {
    const { account } = await fresh(stack);
    const path = (query: string) => ({ method: 'GET', path: `/v1/accounts?include=${query}` });
    refused(await send(stack, path('users')), 'invalid_request', 'include');
    const admin = await addApiKey(stack, account, { scopes: ['admin'] });
    refused(await send(stack, { ...path('usage'), apiKey: admin }), 'forbidden');
  });

  /** The embedded engine has one connection, which a transaction keeps. */
  test.skipIf(process.env.TEST_DATABASE_URL === undefined)(
    'is refused with the figures while Postgres does not sum, and comes without them',
    async () => {
      await stack.db.transaction(async (tx) => {
        await tx.execute(sql`lock table ledger in access exclusive mode`);
        const asked = send(stack, { method: 'GET', path: '/v1/accounts?include=usage' });
        await othersWait(stack, tx);
        await list('limit=1');
        refused(await asked, 'database_unavailable');
      });
      await list('include=usage');
    },
  );
});
