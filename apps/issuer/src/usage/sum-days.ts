import { ledger, usageMarks } from '@presign/schema/ledger-tables';
import { accounts } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, gt, inArray, type SQL, sql } from 'drizzle-orm';
import { addToDays, takeFromDays } from './day-sums.ts';

/** The number of calls of a busy account that one transaction sums. Ledger and sums wait for each other meanwhile. */
const SUMMED = 20_000;
/** The number of accounts that one transaction considers. */
const ACCOUNTS = 50;
/** An account with fewer calls is summed together with others. */
const FEW = SUMMED / ACCOUNTS;

/** How old calls are before they are summed: nearly all have reached the ledger by then, and MCP calls have ended. */
const SUMMED_AFTER = sql`interval '1 hour'`;

/**
 * Extends sums toward the last full hour before an hour ago. It takes the account that is most behind, completely or in part, and further
 * accounts with few calls.
 * @returns whether there may be more
 */
export async function sumMore(tx: Transaction, now: SQL): Promise<boolean> {
  await tx.execute(sql`select pg_advisory_xact_lock(${SUMS_LOCK})`);
  // Postgres expects millions of calls. Compiling for them took 4/5 of the time: 11,000 calls a second instead of 54,000.
  await tx.execute(sql`set local jit = off`);
  const until = sql`date_trunc('hour', ${now} - ${SUMMED_AFTER}, 'UTC')`;
  const mark = sql`coalesce(${usageMarks.summedUntil}, '-infinity')`;
  const own = sql`${ledger} where ${ledger.accountId} = behind.id
    and ${ledger.settledAt} >= behind.mark and ${ledger.settledAt} < ${until}`;
  const isFew = sql`(select count(*) from (select from ${own} limit ${FEW}) as each) < ${FEW}`;
  // A mark is in whole milliseconds. If more than a batch has settled in one millisecond, all calls up to its end are
  // taken.
  const full = sql`(select greatest(date_trunc('milliseconds', ${ledger.settledAt}), behind.mark + interval '1 ms')
    from ${own} order by ${ledger.settledAt} offset ${SUMMED} limit 1)`;
  // With the offset Postgres finds each account's calls by the index. Without the offset it reads the whole ledger, because it expects many
  // calls.
  const moved = await tx.execute(sql`with behind as materialized (
      select ${accounts.id}, ${mark} as mark, row_number() over (order by ${mark}, ${accounts.id}) as place from ${accounts}
      left join ${usageMarks} on ${usageMarks.accountId} = ${accounts.id}
      where ${mark} < ${until} order by place limit ${ACCOUNTS}),
    chosen as materialized (
      select id, mark, least(case when place = 1 then ${full} end, ${until}) as until from behind
      where place = 1 or ${isFew}),
    settled as (select each.* from chosen cross join lateral (select * from ${ledger} where ${ledger.accountId} = chosen.id
      and ${ledger.settledAt} >= chosen.mark and ${ledger.settledAt} < chosen.until offset 0) as each),
    added as (${addToDays(sql`settled`)})
    insert into ${usageMarks} (account_id, summed_until) select id, until from chosen
      on conflict (account_id) do update set summed_until = excluded.summed_until
      returning account_id`);
  return moved.length > 0;
}

/** The number of an advisory lock. No other code on the server may lock it. */
const SUMS_LOCK = 7_743_448;

/** Prevents sums from being extended until this transaction ends. Call it before calls are written to the ledger. */
export const holdMarks = async (tx: Transaction): Promise<void> =>
  void (await tx.execute(sql`select pg_advisory_xact_lock_shared(${SUMS_LOCK})`));

/** Adds the calls that settled before the mark of their account, because the sums have already passed them. */
export async function addLateCalls(tx: Transaction, holdIds: readonly string[]): Promise<void> {
  await changeSums(tx, await findSummed(tx, holdIds), addToDays);
}

/**
 * Subtracts the calls that are already summed from their sums, before the calls change.
 * @returns these calls, to be added again after the change
 */
export async function takeSummedCalls(tx: Transaction, holdIds: readonly string[]): Promise<string[]> {
  const summed = await findSummed(tx, holdIds);
  await changeSums(tx, summed, takeFromDays);
  return summed;
}

async function findSummed(tx: Transaction, holdIds: readonly string[]): Promise<string[]> {
  if (holdIds.length === 0) return [];
  const rows = await tx
    .select({ holdId: ledger.holdId })
    .from(ledger)
    .innerJoin(usageMarks, eq(usageMarks.accountId, ledger.accountId))
    .where(and(inArray(ledger.holdId, [...holdIds]), gt(usageMarks.summedUntil, ledger.settledAt)));
  return rows.map(({ holdId }) => holdId);
}

async function changeSums(tx: Transaction, holdIds: readonly string[], change: (calls: SQL) => SQL) {
  if (holdIds.length === 0) return;
  // Two transactions that change the same sums in several statements would wait for each other.
  await tx.execute(sql`select pg_advisory_xact_lock(${LATE_LOCK})`);
  const calls = sql`select ${ledger}.* from ${ledger} where ${inArray(ledger.holdId, [...holdIds])}`;
  await tx.execute(sql`with calls as (${calls}) ${change(sql`calls`)}`);
}
const LATE_LOCK = 7_743_449;
