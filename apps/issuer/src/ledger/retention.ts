import type { RedisClient } from '@presign/limits';
import {
  callHours,
  ledger,
  refusalDays,
  refusedCalls,
  usageDays,
  usageMarks,
} from '@presign/schema/ledger-tables';
import {
  budgets,
  credentials,
  grants,
  oauthTokens,
  pendingChanges,
  sessions,
  virtualKeys,
} from '@presign/schema/tables';
import { pendingUsage } from '@presign/schema/webhook-tables';
import type { Database, TextRow, Transaction } from '@presign/service/database';
import { getTableColumns, inArray, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Logger } from 'pino';
import { sumMore } from '../usage/sum-days.ts';
import { type Archive, type ArchiveStore, archiveOf } from './archive.ts';
import type { ArchiveTarget } from './archive-store.ts';
import { dropDay, oldestDay, partitionOf } from './refused-days.ts';

/** How long rows are kept in Postgres. */
export type Retention = {
  /** Days after a call, in whole UTC days. 0: forever. */
  readonly ledgerDays: number;
  /** Days of the sums by day, in whole UTC days. 0: forever. */
  readonly usageDays: number;
  /** Days after the expiry of a URL. 0: forever. */
  readonly grantDays: number;
  /** Days of refused calls and of their sums by day, in whole UTC days. 0: forever. */
  readonly refusedDays: number;
  /** Where rows go before they leave Postgres. */
  readonly archive: ArchiveTarget | undefined;
};

type Deps = { readonly db: Database; readonly redis: RedisClient; readonly log: Logger } & {
  /** Where deleted rows go. */
  readonly store: ArchiveStore | undefined;
};

/** Rows that one transaction deletes: a fraction of a second's work. */
const CALLS = 5_000;
const GRANTS = 1_000;

/**
 * Creates a task that extends the sums by day, then deletes old calls that are in the sums, and archives these calls. Any number of issuers
 * may run it.
 * @returns whether there may be more
 */
export function forgetCalls(deps: Deps, { ledgerDays }: Retention): () => Promise<boolean> {
  const archive = deps.store && archiveOf(deps.db, 'calls', deps.store);
  const count = countOf(deps, 'old calls were deleted from the ledger, and their sums by day kept');
  return async () => {
    const now = await readNow(deps);
    if (await alone(deps.db, (tx) => sumMore(tx, now))) return true;
    if (ledgerDays === 0) return false;
    const cutoff = sql`date_trunc('day', ${daysBefore(now, ledgerDays)}, 'UTC')`;
    const gone = await deleting(deps.db, archive, async (tx) => {
      const calls = await tx.execute<TextRow>(takeCalls(cutoff));
      await archive?.add(tx, 'ledger', calls);
      return calls.length;
    });
    return count({ calls: gone ?? 0 }, gone === CALLS);
  };
}

/** Selects calls of whole days whose sums are complete, account by account, in the order of the ledger's index on the time. */
function takeCalls(cutoff: SQL): SQL {
  const keptFrom = sql`least(${cutoff}, date_trunc('day', ${usageMarks.summedUntil}, 'UTC'))`;
  return sql`
  with old as materialized (
    select each.hold_id from ${usageMarks} cross join lateral (
      select ${ledger.holdId} from ${ledger}
      where ${ledger.accountId} = ${usageMarks.accountId} and ${ledger.settledAt} < ${keptFrom}
        and ${isUnusedIn(pendingUsage.holdId, ledger.holdId)}
      order by ${ledger.settledAt} limit ${CALLS}) as each
    limit ${CALLS}),
  gone as (delete from ${ledger} using old where ${ledger.holdId} = old.hold_id returning ${ledger}.*),
  marked as (update ${usageMarks} set kept_from = greatest(${usageMarks.keptFrom}, ${keptFrom})
    where ${usageMarks.accountId} in (select gone.account_id from gone))
  select ${asText(ledger)} from gone as ${ledger}`;
}

/**
 * Makes a task that deletes old sums by day and archives them. The calls of their days were deleted before. Any number of
 * issuers may run it.
 * @returns whether there may be more
 */
export function forgetSums(deps: Deps, { usageDays: days }: Retention): () => Promise<boolean> {
  const archive = deps.store && archiveOf(deps.db, 'days', deps.store);
  const count = countOf(deps, 'old sums by day were deleted');
  return async () => {
    const cutoff = sql`date_trunc('day', ${daysBefore(await readNow(deps), days)}, 'UTC')`;
    const gone = await deleting(deps.db, archive, async (tx) => {
      const sums = await tx.execute<TextRow>(takeSums(cutoff));
      await archive?.add(tx, 'usage_days', sums);
      return sums.length;
    });
    return count({ sums: gone ?? 0 }, gone === CALLS);
  };
}

/** Selects sums of days whose calls are gone, account by account. From the first deletion on, reports of these days are refused. */
function takeSums(cutoff: SQL): SQL {
  const sumsFrom = sql`least(${cutoff}, ${usageMarks.keptFrom})`;
  return sql`
  with old as materialized (
    select each.id from ${usageMarks} cross join lateral (
      select ${usageDays.id} from ${usageDays}
      where ${usageDays.accountId} = ${usageMarks.accountId}
        and ${usageDays.day} < (${sumsFrom} at time zone 'UTC')::date
      order by ${usageDays.day} limit ${CALLS}) as each
    where ${usageMarks.keptFrom} is not null limit ${CALLS}),
  gone as (delete from ${usageDays} using old where ${usageDays.id} = old.id returning ${usageDays}.*),
  marked as (update ${usageMarks} set sums_from = greatest(${usageMarks.sumsFrom}, ${sumsFrom})
    where ${usageMarks.accountId} in (select gone.account_id from gone))
  select ${asText(usageDays)} from gone as ${usageDays}`;
}

/**
 * Makes a task that drops the days of old refused calls, and deletes their sums. With an archive, rows are deleted and archived first. Any
 * number of issuers may run it.
 * @returns whether there may be more
 */
export function forgetRefused(deps: Deps, { refusedDays: days }: Retention): () => Promise<boolean> {
  const archive = deps.store && archiveOf(deps.db, 'refused', deps.store);
  const count = countOf(deps, 'old refused calls were deleted');
  return async () => {
    const now = await readNow(deps);
    const gone = await deleting(deps.db, archive, async (tx) => {
      const [row] = await tx.execute<TextRow>(
        sql`select (${daysBefore(now, days)} at time zone 'UTC')::date::text as day`,
      );
      const cutoff = row?.['day'] ?? '';
      const sums = await tx.execute<TextRow>(takeRefusalDays(cutoff));
      await archive?.add(tx, 'refusal_days', sums);
      const day = await oldestDay(tx);
      if (day === undefined || day >= cutoff) return { days: 0, calls: 0, isMore: sums.length === CALLS };
      const calls = archive ? await tx.execute<TextRow>(takeRefused(day)) : [];
      await archive?.add(tx, 'refused_calls', calls);
      const isEmpty = calls.length < CALLS;
      if (isEmpty) await dropDay(tx, day);
      return { days: isEmpty ? 1 : 0, calls: calls.length, isMore: true };
    });
    const { isMore = false, ...counts } = gone ?? {};
    return count(counts, isMore);
  };
}

/**
 * Makes a task that deletes the sums by the hour that are as old as calls that leave the ledger. Any number of issuers may run it.
 * @returns whether there may be more
 */
export function forgetHours(deps: Deps, { ledgerDays }: Retention): () => Promise<boolean> {
  const count = countOf(deps, 'old sums by the hour were deleted');
  return async () => {
    const cutoff = sql`date_trunc('day', ${daysBefore(await readNow(deps), ledgerDays)}, 'UTC')`;
    const gone = await alone(deps.db, (tx) =>
      tx.execute<TextRow>(sql`delete from ${callHours} where ctid in (
        select ctid from ${callHours} where ${callHours.hour} < ${cutoff} limit ${CALLS}) returning 1 as gone`),
    );
    return count({ sums: gone.length }, gone.length === CALLS);
  };
}

const takeRefused = (day: string): SQL => sql`
  delete from ${partitionOf(day)} as refused_calls
  where ctid in (select ctid from ${partitionOf(day)} limit ${CALLS}) returning ${asText(refusedCalls)}`;

const takeRefusalDays = (cutoff: string): SQL => sql`
  delete from ${refusalDays} where ctid in (select ctid from ${refusalDays} where day < ${cutoff}::date limit ${CALLS})
  returning ${asText(refusalDays)}`;

/** The last visited grant, in the order of expiry. */
type Place = { readonly expiresAt: string; readonly id: string };
const START: Place = { expiresAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' };

/**
 * Makes a task that deletes grants some time after their expiry, and their budgets, credentials and sessions if nothing else refers to
 * them. A grant is kept while its credential is kept. Any number of issuers may run it. A run continues where the last one ended.
 * @returns whether there may be more
 */
export function forgetGrants(deps: Deps, { grantDays }: Retention): () => Promise<boolean> {
  const archive = deps.store && archiveOf(deps.db, 'urls', deps.store);
  const count = countOf(deps, 'old URLs were deleted');
  let place = START;
  return async () => {
    const cutoff = daysBefore(await readNow(deps), grantDays);
    const gone = await deleting(deps.db, archive, async (tx) => {
      const seen = await tx.execute<TextRow>(nextGrants(cutoff, place));
      const tables = await deleteGrants(
        tx,
        seen.flatMap(({ id }) => id ?? []),
      );
      for (const [name, rows] of Object.entries(tables)) await archive?.add(tx, name, rows);
      return { last: seen.length === GRANTS ? seen.at(-1) : undefined, ...tables };
    });
    if (!gone) return count({}, false);
    const { last } = gone;
    place = last ? { expiresAt: last['expires_at'] ?? '', id: last['id'] ?? '' } : START;
    const { grants: urls = [], sessions: ended = [] } = gone;
    return count({ urls: urls.length, sessions: ended.length }, last !== undefined);
  };
}

const nextGrants = (cutoff: SQL, { expiresAt, id }: Place): SQL => sql`
  select ${grants.id}::text, ${grants.expiresAt}::text from ${grants}
  where ${grants.expiresAt} < ${cutoff} and ${grants.expiresAt} >= ${expiresAt}::timestamptz
    and (${grants.expiresAt}, ${grants.id}) > (${expiresAt}::timestamptz, ${id}::uuid)
  order by ${grants.expiresAt}, ${grants.id} limit ${GRANTS}`;

async function deleteGrants(tx: Transaction, ids: readonly string[]) {
  if (ids.length === 0) return {};
  const isErased = sql`(${grants.credentialId} is null or ${grants.virtualKeyId} is not null or exists (
    select from ${credentials} where ${credentials.id} = ${grants.credentialId} and ${credentials.sealed} = ''))`;
  const gone = await deleteUnused(
    tx,
    grants,
    ids,
    sql`${isUnusedIn(pendingChanges.grantId, grants.id)} and ${isErased}`,
  );
  const named = (name: string) => [...new Set(gone.flatMap((row) => row[name] ?? []))];
  const ended = await deleteUnused(
    tx,
    budgets,
    named('budget_id'),
    sql`${isUnusedIn(pendingChanges.budgetId, budgets.id)} and ${isUnusedIn(grants.budgetId, budgets.id)} and ${isUnusedIn(virtualKeys.budgetId, budgets.id)}`,
  );
  await deleteUnused(
    tx,
    credentials,
    named('credential_id'),
    sql`${credentials.sealed} = '' and ${isUnusedIn(grants.credentialId, credentials.id)}
      and ${isUnusedIn(virtualKeys.credentialId, credentials.id)}
      and ${isUnusedIn(oauthTokens.credentialId, credentials.id)}
      and ${isUnusedIn(pendingChanges.credentialId, credentials.id)}`,
  );
  const empty = isUnusedIn(grants.sessionId, sessions.id);
  return {
    grants: gone,
    budgets: ended,
    sessions: await deleteUnused(tx, sessions, named('session_id'), empty),
  };
}

/** Whether no row refers to another by this column. */
const isUnusedIn = (column: PgColumn, id: PgColumn): SQL =>
  sql`not exists (select from ${column.table} where ${column} = ${id})`;

/** Deletes the rows that nothing refers to and no other transaction has locked, and returns them. */
async function deleteUnused(
  tx: Transaction,
  table: PgTable & { readonly id: PgColumn },
  ids: readonly string[],
  isUnused: SQL,
): Promise<readonly TextRow[]> {
  if (ids.length === 0) return [];
  const lock = sql`select ${table.id}::text from ${table} where ${inArray(table.id, [...ids])} for update skip locked`;
  const locked = (await tx.execute<TextRow>(lock)).flatMap(({ id }) => id ?? []);
  if (locked.length === 0) return [];
  // Checked again under the locks, because a new grant may have joined a session before the first statement locked it.
  return tx.execute<TextRow>(
    sql`delete from ${table} where ${inArray(table.id, locked)} and ${isUnused} returning ${asText(table)}`,
  );
}

/** All columns of a table as text, under their own names. */
const asText = (table: PgTable): SQL =>
  sql.join(
    Object.values(getTableColumns(table)).map((column) => sql`${column}::text`),
    sql`, `,
  );

/** The earlier of two clocks, so that a clock that is ahead deletes nothing alive. */
async function readNow({ redis }: Deps): Promise<SQL> {
  const [seconds] = await redis.time();
  return sql`least(now(), to_timestamp(${Number(seconds)}::double precision))`;
}

const daysBefore = (now: SQL, days: number): SQL => sql`(${now} - ${days} * interval '1 day')`;

/** The number of an advisory lock. No other code on the server may lock it. */
const LOCK = 7_743_447;

/** Runs in a transaction, one at a time over all issuers. */
const alone = <T>(db: Database, run: (tx: Transaction) => Promise<T>): Promise<T> =>
  db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(${LOCK})`);
    return run(tx);
  });

/**
 * Runs a transaction that deletes rows and adds them to the archive, and sends them. Rows of earlier runs are sent first. Undefined while
 * another issuer is sending some, because that issuer also deletes the next ones.
 * @throws what the archive throws; then no row is deleted until the rows that have left their table are sent
 */
async function deleting<T>(
  db: Database,
  archive: Archive | undefined,
  run: (tx: Transaction) => Promise<T>,
): Promise<T | undefined> {
  await archive?.send();
  const result = await alone(db, async (tx) => ((await archive?.isWaiting(tx)) ? undefined : run(tx)));
  await archive?.send();
  return result;
}

/** Logs the total of a pass when it ends. */
function countOf({ log }: Deps, message: string) {
  let sums: Record<string, number> = {};
  return (counts: Readonly<Record<string, number>>, goesOn: boolean): boolean => {
    for (const [name, more] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + more;
    if (!goesOn && Object.values(sums).some((sum) => sum > 0)) log.info(sums, message);
    if (!goesOn) sums = {};
    return goesOn;
  };
}
