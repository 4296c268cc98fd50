import { refusedCalls } from '@presign/schema/ledger-tables';
import type { Database, TextRow, Transaction } from '@presign/service/database';
import { getTableName, sql } from 'drizzle-orm';

const DAY_MS = 86_400_000;
const TABLE = getTableName(refusedCalls);
/** How long a change of partitions waits for readers. Other queries wait behind it. */
const LOCK_WAIT = '2s';
/** The number of an advisory lock. No other code on the server may lock it. */
const LOCK = 7_743_448;
/** The number of days whose partitions are created in advance. */
const AHEAD = 2;

/** The partitions of `refused_calls`: one for each day in UTC. */
export type RefusedDays = {
  /** Creates the missing partitions for these times. */
  readonly make: (times: readonly Date[]) => Promise<void>;
  /** Reads again which partitions exist. */
  readonly forget: () => void;
};

/** Caches the days that have a partition, so that most batches need no query. */
export function refusedDays(db: Database): RefusedDays {
  const made = new Set<string>();
  return {
    make: async (times) => {
      for (const day of new Set(times.map(dayOf))) {
        if (made.has(day)) continue;
        await db.transaction((tx) => makeDay(tx, day));
        made.add(day);
      }
    },
    forget: () => made.clear(),
  };
}

/** Creates a task that creates the partitions for today and the next days. */
export function makeDaysAhead(db: Database, now: () => number): () => Promise<boolean> {
  const days = refusedDays(db);
  return async () => {
    await days.make(Array.from({ length: AHEAD + 1 }, (_, ahead) => new Date(now() + ahead * DAY_MS)));
    return false;
  };
}

/** The oldest day that has a partition, as `2026-01-31`. */
export async function oldestDay(tx: Transaction): Promise<string | undefined> {
  const [row] = await tx.execute<TextRow>(sql`
    select min(relname) as name from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = ${TABLE}::regclass`);
  const [, year, month, day] = /_(\d{4})(\d\d)(\d\d)$/.exec(row?.['name'] ?? '') ?? [];
  return year === undefined ? undefined : `${year}-${month}-${day}`;
}

/** Drops the partition of a day with all its rows. */
export async function dropDay(tx: Transaction, day: string): Promise<void> {
  await alone(tx);
  await tx.execute(sql`drop table ${partitionOf(day)}`);
}

/** The partition of a day, as SQL names it. */
export const partitionOf = (day: string) => sql.identifier(nameOf(day));

/** Attaches a table. Readers and writers of other days need not wait for this. */
async function makeDay(tx: Transaction, day: string): Promise<void> {
  await alone(tx);
  const [found] = await tx.execute<TextRow>(sql`select to_regclass(${nameOf(day)})::text as name`);
  if (found?.['name']) return;
  await tx.execute(sql`create table ${partitionOf(day)} (like ${refusedCalls} including all)`);
  const next = dayOf(new Date(Date.parse(day) + DAY_MS));
  const bounds = sql.raw(`from ('${day} 00:00:00+00') to ('${next} 00:00:00+00')`);
  await tx.execute(
    sql`alter table ${refusedCalls} attach partition ${partitionOf(day)} for values ${bounds}`,
  );
}

const nameOf = (day: string): string => `${TABLE}_${day.replaceAll('-', '')}`;
const dayOf = (at: Date): string => at.toISOString().slice(0, 10);

async function alone(tx: Transaction): Promise<void> {
  await tx.execute(sql.raw(`set local lock_timeout = '${LOCK_WAIT}'`));
  await tx.execute(sql`select pg_advisory_xact_lock(${LOCK})`);
}
