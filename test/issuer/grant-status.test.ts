import { randomUUID } from 'node:crypto';
import {
  type GrantFacts,
  isActiveInSql,
  isAliveInSql,
  type StatusOfGrant,
  statusInSql,
  statusOfGrant,
  timeInSql,
} from '@presign/schema/grant-status';
import { accounts, budgets, credentials, grants, sessions, virtualKeys } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stores, startStores } from '../harness/stores.ts';

/** A grant that expires at 1000. Times are milliseconds, and every field that a case leaves out ends nothing. */
type Case = {
  readonly now?: number;
  readonly grantRevoked?: number;
  readonly sessionRevoked?: number;
  /** `none`: the grant has no virtual key. */
  readonly keyRevoked?: number | 'none';
  readonly maxUses?: number;
  readonly used?: number;
  readonly costLimit?: number;
  readonly spent?: number;
};

const EXPIRY = 1000;
const EARLY = 400;
const LATE = 2000;

const CASES: readonly (readonly [expected: StatusOfGrant, when: string, fields: Case])[] = [
  ['active', 'nothing ended it', {}],
  ['active', 'it has no virtual key', { keyRevoked: 'none' }],
  ['active', 'one millisecond is left', { now: 999 }],
  ['expired', 'its expiry is now', { now: 1000 }],
  ['expired', 'its expiry is over', { now: LATE }],
  ['revoked', 'it was revoked', { grantRevoked: EARLY }],
  ['revoked', 'its session was revoked', { sessionRevoked: EARLY }],
  ['revoked', 'its virtual key was deleted', { keyRevoked: EARLY }],
  ['revoked', 'it was revoked, and its expiry is over', { grantRevoked: EARLY, now: LATE }],
  ['revoked', 'its session was revoked, and its expiry is over', { sessionRevoked: EARLY, now: LATE }],
  ['revoked', 'its virtual key was deleted, and its expiry is over', { keyRevoked: EARLY, now: LATE }],
  ['revoked', 'it was revoked in its last millisecond', { grantRevoked: 999, now: LATE }],
  ['expired', 'it was revoked at its expiry', { grantRevoked: 1000, now: LATE }],
  ['expired', 'its session was revoked after its expiry', { sessionRevoked: 1500, now: LATE }],
  ['expired', 'its virtual key was deleted after its expiry', { keyRevoked: 1500, now: LATE }],
  [
    'revoked',
    'it was revoked before and its session after its expiry',
    { grantRevoked: 1, sessionRevoked: 1500 },
  ],
  ['active', 'one use is left', { maxUses: 3, used: 2 }],
  ['exhausted', 'no use is left', { maxUses: 3, used: 3 }],
  ['exhausted', 'a loss of data let more uses through than its limit', { maxUses: 3, used: 4 }],
  ['active', 'one microdollar is left', { costLimit: 50, spent: 49 }],
  ['exhausted', 'its cost limit is spent', { costLimit: 50, spent: 50 }],
  [
    'exhausted',
    'its cost limit is spent and uses are left',
    { costLimit: 50, spent: 60, maxUses: 9, used: 1 },
  ],
  ['active', 'a cost limit of 0 allows free calls', { costLimit: 0 }],
  [
    'exhausted',
    'a cost limit of 0 allows free calls, but no use is left',
    { costLimit: 0, maxUses: 1, used: 1 },
  ],
  ['expired', 'no use is left and its expiry is over', { maxUses: 3, used: 3, now: LATE }],
  ['revoked', 'no use is left and it was revoked', { maxUses: 3, used: 3, grantRevoked: EARLY }],
];

const times = [undefined, EARLY, EXPIRY, 1500];
/** Every combination of ends and limits: the two rules must agree also where the table above says nothing. */
const COMBINATIONS: readonly Case[] = times.flatMap((grantRevoked) =>
  times.flatMap((sessionRevoked) =>
    (['none', ...times] as const).flatMap((keyRevoked) =>
      [500, EXPIRY, LATE].flatMap((now) =>
        [{}, { maxUses: 2, used: 2 }, { costLimit: 0 }, { costLimit: 5, spent: 5 }].map((limits) => ({
          ...limits,
          now,
          ...(grantRevoked === undefined ? {} : { grantRevoked }),
          ...(sessionRevoked === undefined ? {} : { sessionRevoked }),
          ...(keyRevoked === undefined ? {} : { keyRevoked }),
        })),
      ),
    ),
  ),
);

let stores: Stores;
beforeAll(async () => {
  stores = await startStores();
});
afterAll(() => stores.close());

const dateOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms));
const nowOf = ({ now = 500 }: Case) => now;

const factsOf = (of: Case): GrantFacts => ({
  grant: { revokedAt: dateOf(of.grantRevoked), expiresAt: new Date(EXPIRY) },
  session: { revokedAt: dateOf(of.sessionRevoked) },
  virtualKey: of.keyRevoked === 'none' ? null : { revokedAt: dateOf(of.keyRevoked) },
  budget: { maxUses: of.maxUses ?? null, costLimitMicrousd: of.costLimit ?? null },
  figures: { used: of.used ?? 0, spentMicrousd: of.spent ?? 0 },
});

/** Stores one grant for each case, and returns their ids. */
async function store(db: Database, cases: readonly Case[]): Promise<string[]> {
  const accountId = randomUUID();
  await db.insert(accounts).values({ id: accountId, name: 'test' });
  const rows = cases.map((of) => {
    const [id, sessionId, budgetId, credentialId] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const { grant, session, virtualKey, budget, figures } = factsOf(of);
    const keyId = virtualKey && `vk_${id}`;
    return {
      session: { id: sessionId, accountId, ...session },
      budget: {
        ...budget,
        id: budgetId,
        partition: 0,
        used: figures.used,
        settledMicrousd: figures.spentMicrousd,
      },
      credential: { id: credentialId, accountId, sealed: '' },
      keys: keyId
        ? [{ id: keyId, accountId, name: '', provider: 'openai', credentialId, budgetId, ...virtualKey }]
        : [],
      grant: {
        ...{ id, accountId, sessionId, budgetId, credentialId, kind: 'llm' as const, provider: 'openai' },
        ...{ virtualKeyId: keyId, issuedAt: new Date(0), ...grant },
      },
    };
  });
  await db.insert(sessions).values(rows.map((row) => row.session));
  await db.insert(budgets).values(rows.map((row) => row.budget));
  await db.insert(credentials).values(rows.map((row) => row.credential));
  await db.insert(virtualKeys).values(rows.flatMap((row) => row.keys));
  await db.insert(grants).values(rows.map((row) => row.grant));
  return rows.map((row) => row.grant.id);
}

/** The status of each grant at a time, by SQL. `isActiveInSql` and `isAliveInSql` must say the same. */
async function statusesAt(db: Database, now: number): Promise<Map<string, StatusOfGrant>> {
  const time = timeInSql(now);
  const asked = { id: grants.id, status: statusInSql(time) };
  const joined = () =>
    db
      .select(asked)
      .from(grants)
      .innerJoin(sessions, eq(sessions.id, grants.sessionId))
      .innerJoin(budgets, eq(budgets.id, grants.budgetId))
      .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId));
  const all = await joined();
  const active = await joined().where(isActiveInSql(time));
  const idsOf = (rows: typeof all) => rows.map((row) => row.id).sort();
  expect(idsOf(active)).toEqual(idsOf(all.filter((row) => row.status === 'active')));
  const alive = await joined().where(isAliveInSql(time));
  expect(idsOf(alive)).toEqual(
    idsOf(all.filter(({ status }) => status === 'active' || status === 'exhausted')),
  );
  return new Map(all.map((row) => [row.id, row.status]));
}

describe('a grant', () => {
  test.each(CASES)('is %s in TypeScript when %s', (expected, _when, of) => {
    expect(statusOfGrant(factsOf(of), nowOf(of))).toBe(expected);
  });

  test('has the same status in SQL as in the table', async () => {
    const ids = await store(
      stores.db,
      CASES.map(([, , of]) => of),
    );
    const seen: string[] = [];
    for (const [i, [, when, of]] of CASES.entries())
      seen.push(`${(await statusesAt(stores.db, nowOf(of))).get(ids[i] ?? '')}: ${when}`);
    expect(seen).toEqual(CASES.map(([expected, when]) => `${expected}: ${when}`));
  });

  test('has one status in SQL and in TypeScript for every combination of ends and limits', async () => {
    const ids = await store(stores.db, COMBINATIONS);
    expect(ids).toHaveLength(960);
    for (const now of new Set(COMBINATIONS.map(nowOf))) {
      const found = await statusesAt(stores.db, now);
      for (const [i, of] of COMBINATIONS.entries())
        expect([of, found.get(ids[i] ?? '')]).toEqual([of, statusOfGrant(factsOf(of), now)]);
    }
  });
});
