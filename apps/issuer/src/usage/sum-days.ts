import { ledger, usageMarks } from '@presign/schema/ledger-tables';
import { accounts } from '@presign/schema/tables';
import type { TextRow, Transaction } from '@presign/service/database';
import { inArray, type SQL, sql } from 'drizzle-orm';
import { addToDays } from './sum-calls.ts';

/** Calls that one transaction sums. Ledger and sums wait for each other meanwhile. */
const SUMMED = 20_000;

/** How old calls are before they are summed: nearly all have reached the ledger by then. */
const SUMMED_AFTER = sql`interval '2 days'`;

/**
 * Moves the sums of the account that is most behind on towards the last midnight of two days ago.
 * @returns whether there may be more
 */
export async function sumMore(tx: Transaction, now: SQL): Promise<boolean> {
  await tx.execute(sql`select pg_advisory_xact_lock(${SUMS_LOCK})`);
  const until = sql`date_trunc('day', ${now} - ${SUMMED_AFTER}, 'UTC')`;
  const mark = sql`coalesce(${usageMarks.summedUntil}, '-infinity')`;
  const [next] = await tx.execute<TextRow>(sql`with behind as (
      select ${accounts.id}, ${mark} as mark from ${accounts}
      left join ${usageMarks} on ${usageMarks.accountId} = ${accounts.id}
      where ${mark} < ${until} order by 2, 1 limit 1)
    select id::text, mark::text, ${until}::text as until, (
      select ${ledger.settledAt} from ${ledger} where ${ledger.accountId} = behind.id
        and ${ledger.settledAt} >= behind.mark and ${ledger.settledAt} < ${until}
      order by ${ledger.settledAt} offset ${SUMMED} limit 1)::text as full from behind`);
  if (!next) return false;
  // More than a whole batch may have settled in one moment: then up to the end of it.
  const end = sql`least(greatest(${next['full'] ?? next['until']}::timestamptz, ${next['mark']}::timestamptz + interval '1 ms'),
    ${next['until']}::timestamptz)`;
  await tx.execute(sql`with settled as (select ${ledger}.* from ${ledger} where ${ledger.accountId} = ${next['id']}
      and ${ledger.settledAt} >= ${next['mark']}::timestamptz and ${ledger.settledAt} < ${end}),
    moved as (insert into ${usageMarks} (account_id, summed_until) values (${next['id']}, ${end})
      on conflict (account_id) do update set summed_until = excluded.summed_until)
    ${addToDays(sql`settled`)}`);
  return true;
}

/** Any fixed number that nothing else on the server locks. */
const SUMS_LOCK = 7_743_448;

/** Lets no sums be moved on until this transaction ends. Call it before calls are written to the ledger. */
export const holdMarks = async (tx: Transaction): Promise<void> =>
  void (await tx.execute(sql`select pg_advisory_xact_lock_shared(${SUMS_LOCK})`));

/** Adds those of these new calls that settled before the mark of their account: its sums have gone past them. */
export async function addLateCalls(tx: Transaction, holdIds: readonly string[]): Promise<void> {
  if (holdIds.length === 0) return;
  const late = sql`select ${ledger}.* from ${ledger} join ${usageMarks}
    on ${usageMarks.accountId} = ${ledger.accountId} and ${usageMarks.summedUntil} > ${ledger.settledAt}
    where ${inArray(ledger.holdId, [...holdIds])}`;
  await tx.execute(sql`with late as (${late}) ${addToDays(sql`late`)}`);
}
