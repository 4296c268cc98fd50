import { setTimeout as sleep } from 'node:timers/promises';
import { partitions } from '@presign/schema/ledger-tables';
import { sql } from 'drizzle-orm';
import { type Database, sqlState } from './database.ts';

/** Whether Postgres takes writes. `read_only`: also a standby. `full`: its disk has no room. `refused`: it answers with an error. */
export type Writes = 'taken' | 'no_answer' | 'read_only' | 'full' | 'refused';

/** Longer than a working Postgres takes for the probe. */
const ANSWER_MS = 2_000;
/** Postgres is asked this often at most, however many ask. */
const FRESH_MS = 1_000;

/**
 * Makes a probe of Postgres. It never throws, and has one transaction under way at most: while a Postgres that hangs has one, it
 * answers `no_answer`.
 */
export function probeWrites(db: Database): () => Promise<Writes> {
  let asked: Promise<Writes> | undefined;
  let freshUntil = 0;
  return async () => {
    if (!asked || performance.now() > freshUntil) {
      freshUntil = Number.POSITIVE_INFINITY;
      asked = tryWrite(db).finally(() => {
        freshUntil = performance.now() + FRESH_MS;
      });
    }
    const late = new AbortController();
    const timer = sleep(ANSWER_MS, 'no_answer' as const, { signal: late.signal }).catch(
      () => 'no_answer' as const,
    );
    return Promise.race([asked, timer]).finally(() => late.abort());
  };
}

/** More than the smallest `work_mem`, so that a sort of it is written to the disk. */
const SPILLED_ROWS = 200;

/** Does what issuing needs, and leaves no row behind. */
async function tryWrite(db: Database): Promise<Writes> {
  try {
    await db.transaction(async (tx) => {
      // Refused by a server that is read-only (25006), although it writes no row.
      await tx.execute(sql`update ${partitions} set ${sql.identifier('epoch')} = 0 where false`);
      // A temporary file is on the disk of the tables, and is gone with the statement.
      await tx.execute(sql`set local work_mem = '64kB'`);
      await tx.execute(sql`select count(*) from (select distinct repeat('x', 1000) || n as text
        from generate_series(1, ${sql.raw(String(SPILLED_ROWS))}) n order by 1 offset 0) as spilled`);
      // A transaction with an id writes a commit record to the log.
      await tx.execute(sql`select txid_current()`);
    });
    return 'taken';
  } catch (error) {
    return WRITES[sqlState(error) ?? ''] ?? (isAnswer(error) ? 'refused' : 'no_answer');
  }
}

/** PostgreSQL manual, appendix A: read_only_sql_transaction, disk_full. */
const WRITES: Readonly<Record<string, Writes>> = { '25006': 'read_only', '53100': 'full' };

/** An SQLSTATE of a server that serves. Class 08 are errors of the connection, 57 those of a shutdown, 53300 has too many connections. */
const isAnswer = (error: unknown): boolean => /^(?!08|57|53300)[0-9A-Z]{5}$/.test(sqlState(error) ?? '');
