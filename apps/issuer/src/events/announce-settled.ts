import type { UsageEntry } from '@presign/limits';
import type { SettledCall } from '@presign/schema';
import { isActiveInSql } from '@presign/schema/grant-status';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { pendingUsage } from '@presign/schema/webhook-tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { describeLedgerRow, type LedgerRow } from '../usage/describe-row.ts';
import {
  type ChangedBudget,
  type Crossing,
  crossingsOf,
  LEVELS,
  markAnnounced,
  wasExhausted,
} from './levels.ts';
import { type AccountEvent, recordEvents, subscribersOf } from './record-events.ts';

type Grant = typeof grants.$inferSelect;
/** Grants have no limit of tokens in all. */
type SessionCrossing = Crossing<(typeof LEVELS)[number]> & { readonly limit: 'max_uses' | 'cost_limit' };

/**
 * Records `grant.threshold` or `virtual_key.threshold` for each level that a budget has reached, and `session.exhausted`. A
 * level of a limit is announced once: the budget stores the highest one, under the lock of its row. It does so even without a
 * subscriber, so that a new endpoint is not notified about earlier levels.
 */
export async function announceThresholds(
  tx: Transaction,
  changed: readonly ChangedBudget[],
  entries: readonly UsageEntry[],
): Promise<void> {
  const crossings = changed
    .filter(isOfGrants)
    .flatMap((budget) => crossingsOf(budget, LEVELS))
    .filter((each): each is SessionCrossing => each.limit !== 'tokens');
  if (crossings.length === 0) return;
  await markAnnounced(tx, crossings);
  const byBudget = await findGrants(tx, crossings, entries);
  const thresholds = crossings.flatMap((crossing) => {
    const grant = byBudget.get(crossing.budget.id);
    return grant ? thresholdEvents(crossing, grant) : [];
  });
  await recordEvents(tx, thresholds);
  await announceExhausted(tx, crossings, byBudget);
}

/** A window of a shared budget belongs to no session. */
const isOfGrants = ({ sharedId }: ChangedBudget) => sharedId === null;

/** Returns the grant whose call changed each budget last, by the budget's id. */
async function findGrants(
  tx: Transaction,
  crossings: readonly SessionCrossing[],
  entries: readonly UsageEntry[],
): Promise<ReadonlyMap<string, Grant>> {
  const wanted = new Set(crossings.map(({ budget }) => budget.id));
  const grantOf = new Map<string, string>();
  for (const { budgetIds, grantId } of entries)
    for (const id of budgetIds) if (wanted.has(id)) grantOf.set(id, grantId);
  const rows = await tx
    .select()
    .from(grants)
    .where(inArray(grants.id, [...new Set(grantOf.values())]));
  const byId = new Map(rows.map((row) => [row.id, row]));
  const found = Array.from(grantOf, ([budgetId, grantId]) => [budgetId, byId.get(grantId)] as const);
  return new Map(found.filter((pair): pair is [string, Grant] => pair[1] !== undefined));
}

function thresholdEvents({ budget, limit, levels }: SessionCrossing, grant: Grant): AccountEvent[] {
  const timestamp = new Date().toISOString();
  return levels.map((percent) => {
    const reached = { percent, limit, ...figuresOf(budget) };
    const { accountId, virtualKeyId } = grant;
    const event =
      virtualKeyId === null || isOwn(budget, grant)
        ? { type: 'grant.threshold' as const, timestamp, data: { ...ownerOf(grant), ...reached } }
        : {
            type: 'virtual_key.threshold' as const,
            timestamp,
            data: { virtual_key: virtualKeyId, ...reached },
          };
    return { accountId, event };
  });
}

/**
 * A session is exhausted when a grant's own limit is reached and none of its grants is active any more. Its row is
 * locked first: of two transactions that each reach a limit, the second sees the change of the first.
 */
async function announceExhausted(
  tx: Transaction,
  crossings: readonly SessionCrossing[],
  byBudget: ReadonlyMap<string, Grant>,
): Promise<void> {
  const reached = new Map<string, AccountEvent>();
  for (const { budget, limit, levels } of crossings) {
    const grant = byBudget.get(budget.id);
    if (!grant || !levels.includes(100) || wasExhausted(budget) || !isOwn(budget, grant)) continue;
    const data = { ...ownerOf(grant), limit, ...figuresOf(budget) };
    const event = { type: 'session.exhausted' as const, timestamp: new Date().toISOString(), data };
    reached.set(grant.sessionId, { accountId: grant.accountId, event });
  }
  if (reached.size === 0) return;
  const ids = [...reached.keys()].sort();
  const locked = tx.select({ id: sessions.id }).from(sessions).where(inArray(sessions.id, ids));
  await locked.orderBy(asc(sessions.id)).for('no key update');
  for (const id of await sessionsWithActive(tx, ids)) reached.delete(id);
  await recordEvents(tx, [...reached.values()]);
}

/** Returns those of the sessions that have an active grant. */
async function sessionsWithActive(tx: Transaction, ids: readonly string[]): Promise<string[]> {
  const rows = await tx
    .selectDistinct({ id: grants.sessionId })
    .from(grants)
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(and(inArray(grants.sessionId, [...ids]), isActiveInSql(sql`now()`)));
  return rows.map((row) => row.id);
}

const isOwn = (budget: ChangedBudget, grant: Grant) => grant.budgetId === budget.id;

const ownerOf = (grant: Grant) => ({
  session_id: grant.sessionId,
  // The grants of a bundle share its budget.
  grant_id: grant.bundleId ?? grant.id,
  external_session: grant.externalSession,
  external_user: grant.externalUser,
});

const figuresOf = (budget: ChangedBudget) => ({
  max_uses: budget.maxUses,
  cost_limit: budget.costLimitMicrousd,
  settled: { used: budget.used, spent: budget.settledMicrousd },
});

/** Stores the ids of settled calls for a later `usage.settled`, which has many calls in one event. */
export async function recordSettled(
  tx: Transaction,
  calls: readonly { readonly holdId: string; readonly accountId: string }[],
): Promise<void> {
  const accountIds = calls.map((call) => call.accountId);
  const subscribers = await subscribersOf(tx, accountIds, 'usage.settled');
  const wanted = calls
    .filter((call) => subscribers.has(call.accountId))
    .map(({ holdId, accountId }) => ({ holdId, accountId }));
  if (wanted.length > 0) await tx.insert(pendingUsage).values(wanted).onConflictDoNothing();
}

/** A call is about 500 bytes, so an event stays below the 20 kB that Standard Webhooks recommends. */
const CALLS_PER_EVENT = 32;
/** Calls that one transaction announces. */
const BATCH = 1_000;

/**
 * Records `usage.settled` for the stored calls. Any number of issuers may run it, and each call is in one event.
 * @returns whether there may be more
 */
export async function announceUsage(db: Database): Promise<boolean> {
  return db.transaction(async (tx) => {
    const pending = tx.select({ id: pendingUsage.holdId }).from(pendingUsage).limit(BATCH);
    const next = tx.$with('next').as(pending.for('update', { skipLocked: true }));
    const taken = await tx
      .with(next)
      .delete(pendingUsage)
      .where(inArray(pendingUsage.holdId, tx.select({ id: next.id }).from(next)))
      .returning({ id: pendingUsage.holdId });
    if (taken.length === 0) return false;
    const ids = taken.map((row) => row.id);
    const calls = await tx
      .select()
      .from(ledger)
      .where(inArray(ledger.holdId, ids))
      .orderBy(asc(ledger.settledAt));
    await recordEvents(tx, usageEvents(calls));
    return taken.length === BATCH;
  });
}

function usageEvents(rows: readonly LedgerRow[]): AccountEvent[] {
  const byAccount = new Map<string, SettledCall[]>();
  for (const row of rows) {
    const calls = byAccount.get(row.accountId);
    if (calls) calls.push(toCall(row));
    else byAccount.set(row.accountId, [toCall(row)]);
  }
  return Array.from(byAccount).flatMap(([accountId, calls]) =>
    inParts(calls).map((part): AccountEvent => {
      const timestamp = part.at(-1)?.settled_at ?? new Date(0).toISOString();
      return { accountId, event: { type: 'usage.settled', timestamp, data: { calls: part } } };
    }),
  );
}

const inParts = (calls: SettledCall[]): SettledCall[][] =>
  Array.from({ length: Math.ceil(calls.length / CALLS_PER_EVENT) }, (_, i) =>
    calls.slice(i * CALLS_PER_EVENT, (i + 1) * CALLS_PER_EVENT),
  );

const toCall = (row: LedgerRow): SettledCall => ({
  id: row.holdId,
  ...describeLedgerRow(row),
  started_at: row.startedAt.toISOString(),
  settled_at: row.settledAt.toISOString(),
});
