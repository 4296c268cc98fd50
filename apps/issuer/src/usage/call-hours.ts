import { outcomeOf } from '@presign/schema';
import { callHours, type ledger } from '@presign/schema/ledger-tables';
import type { Database, TextRow, Transaction } from '@presign/service/database';
import { sql } from 'drizzle-orm';

/**
 * The number of intervals in an octave. Each interval ends 19 % above the previous one, so its middle is at most 9 % from any time in it.
 */
const OF_OCTAVE = 4;

/** The interval of a time in ms: 0 up to a millisecond, then each ends at 2^(n/4). Times are at most a day, so there are 107 intervals. */
export const intervalOf = (ms: number): number => (ms <= 1 ? 0 : Math.ceil(Math.log2(ms) * OF_OCTAVE - 1e-9));

/** The middle of an interval, in whole milliseconds. */
export const middleOf = (interval: number): number =>
  interval === 0 ? 1 : Math.round(2 ** ((interval - 0.5) / OF_OCTAVE));

const HOUR_MS = 3_600_000;

type Ended = Pick<
  typeof ledger.$inferSelect,
  | 'accountId'
  | 'provider'
  | 'model'
  | 'server'
  | 'outcome'
  | 'failure'
  | 'status'
  | 'totalMs'
  | 'firstByteMs'
  | 'settledAt'
>;

/** Adds calls that have ended to the sums by the hour. A refund is not a call, and an MCP call counts when it ends. */
export async function addToHours(tx: Transaction, calls: readonly Ended[]): Promise<void> {
  const sums = new Map<string, typeof callHours.$inferInsert>();
  for (const call of calls) {
    const outcome = outcomeOf(call);
    if (outcome === 'refunded' || outcome === 'under_way') continue;
    const row = {
      accountId: call.accountId,
      hour: new Date(Math.floor(call.settledAt.getTime() / HOUR_MS) * HOUR_MS),
      provider: call.provider,
      model: call.model,
      server: call.server,
      outcome,
      firstByte: call.firstByteMs === null ? null : intervalOf(call.firstByteMs),
      total: call.totalMs === null ? null : intervalOf(call.totalMs),
    };
    const key = JSON.stringify(row);
    const sum = sums.get(key);
    if (sum) sum.calls += 1;
    else sums.set(key, { ...row, calls: 1 });
  }
  if (sums.size > 0) await tx.insert(callHours).values([...sums.values()]);
}

/** Rows that one transaction merges. */
const MERGED = 20_000;
const COLUMNS = sql.raw('account_id, hour, provider, model, server, outcome, first_byte, total');

/**
 * Merges the rows of one account and hour that have the same values. Late rows are merged again. Any number of issuers may run it.
 * @returns whether there may be more
 */
export async function mergeHours(db: Database): Promise<boolean> {
  return db.transaction(async (tx) => {
    const [row] = await tx.execute<TextRow>(sql`select account_id::text, hour::text from ${callHours}
      where not ${callHours.isMerged} and ${callHours.hour} < now() - interval '2 hours' limit 1 for update skip locked`);
    if (!row) return false;
    // Rows with the same values stay together, because all of an hour are taken unless there are too many.
    await tx.execute(sql`with taken as (delete from ${callHours} where ctid in (
        select ctid from ${callHours} where account_id = ${row['account_id']}::uuid and hour = ${row['hour']}::timestamptz
        order by is_merged limit ${MERGED} for update skip locked) returning *)
      insert into ${callHours} (${COLUMNS}, calls, is_merged) select ${COLUMNS}, sum(calls), true from taken group by ${COLUMNS}`);
    return true;
  });
}
