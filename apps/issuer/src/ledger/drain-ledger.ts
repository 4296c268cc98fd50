import { setTimeout as sleep } from 'node:timers/promises';
import { type Cursor, drain, type RedisClient, reopen, trim, type UsageEntry } from '@presign/limits';
import { causeOf } from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { partitions } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import type { Logger } from 'pino';
import { repeatChanges } from '../grants/pending-changes.ts';
import { writeLedger } from './write-ledger.ts';

type LedgerDeps = { readonly db: Database; readonly redis: RedisClient; readonly log: Logger };

/** Entries of one partition that one transaction writes. */
const BATCH = 500;
const IDLE_MS = 1_000;
const BUSY_MS = 50;
const HELD_MS = 5;
/** How long a closing issuer drains. Calls that settle later wait for another issuer. */
const CLOSING_MS = 5_000;

/** The running drainer. */
export type Ledger = {
  /** Drains until every partition is open and empty: for an orderly shutdown, and for tests. */
  readonly drainAll: (longestMs?: number) => Promise<void>;
  readonly close: () => Promise<void>;
};

/**
 * Moves settled calls from the usage streams in Redis to the ledger in Postgres, each exactly once. It also opens the
 * partitions of a Redis that is new or has lost data. Any number of issuers may run it.
 */
export function startLedger(deps: LedgerDeps): Ledger {
  const place: Place = { cursors: new Map(), repeated: new Map(), reopened: 0 };
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<boolean> = Promise.resolve(false);
  let failing = false;

  const run = async () => {
    let wait = IDLE_MS;
    try {
      round = drainRound(deps, place);
      if (await round) wait = BUSY_MS;
      if (failing) deps.log.info('ledger caught up again');
      failing = false;
    } catch (error) {
      place.cursors.clear();
      if (!failing) deps.log.error(causeOf(error), 'ledger is behind');
      failing = true;
    }
    if (!closed) timer = setTimeout(run, wait);
  };
  let closed = false;
  const running = run();

  const drainAll = async (longestMs = Number.POSITIVE_INFINITY) => {
    const until = Date.now() + longestMs;
    // Another issuer may be draining a partition, so this one looks at it again.
    while (Date.now() < until && (await drainRound(deps, place))) await sleep(HELD_MS);
  };
  const close = async () => {
    closed = true;
    clearTimeout(timer);
    await running;
    await round.catch(() => {});
    await drainAll(CLOSING_MS).catch(() =>
      deps.log.warn('ledger not drained to the end; the rest waits in Redis'),
    );
  };
  return { drainAll, close };
}

/** The last position of each partition that this issuer has seen. Postgres has the true one. */
type Place = {
  readonly cursors: Map<number, Cursor>;
  /** Committed entries that the ledger already had, and that `trim` has not removed yet. */
  readonly repeated: Map<number, ReadonlyMap<string, UsageEntry>>;
  /** Partitions that were opened again since the last log line. */
  reopened: number;
};

/** Looks at every partition once. Returns whether any had work. */
async function drainRound(deps: LedgerDeps, place: Place): Promise<boolean> {
  const { cursors } = place;
  if (cursors.size === 0) {
    for (const row of await deps.db.select().from(partitions))
      cursors.set(row.id, { ...row, partition: row.id });
  }
  const looked = await Promise.allSettled([...cursors.values()].map((cursor) => lookAt(deps, place, cursor)));
  if (place.reopened > 0) {
    deps.log.warn({ partitions: place.reopened }, 'Redis restarted or lost data: reopened from Postgres');
    await repeatChanges(deps.db);
  }
  place.reopened = 0;
  // Waits for all of them, so that none sets a cursor after the caller has cleared the cursors.
  const failed = looked.find((each) => each.status === 'rejected');
  if (failed) throw failed.reason;
  return looked.some((each) => each.status === 'fulfilled' && each.value);
}

async function lookAt(deps: LedgerDeps, place: Place, cursor: Cursor): Promise<boolean> {
  const seen = await drain(deps.redis, cursor, 1);
  if (seen.is === 'ok' && seen.entries.length === 0) return false;
  const moved = await drainPartition(deps, place, cursor.partition);
  if (moved) place.cursors.set(cursor.partition, moved);
  return true;
}

/**
 * Moves one batch of one partition under the lock of its row: ledger rows, budgets and cursor commit together, and then
 * the stream is trimmed. A crash between the two leaves entries that the cursor skips.
 * @returns the new cursor, or undefined when another issuer is draining the partition
 */
async function drainPartition(deps: LedgerDeps, place: Place, id: number): Promise<Cursor | undefined> {
  const done = await deps.db.transaction((tx) => moveBatch(deps, tx, id));
  if (!done) return undefined;
  const { cursor, reopens } = done;
  if (reopens) {
    await reopen(deps.redis, id, cursor.epoch);
    if (cursor.epoch > 1) place.reopened += 1;
    return cursor;
  }
  // Kept until a trim succeeds, so that the next one makes up for a failed one.
  const repeated = new Map(place.repeated.get(id));
  for (const entry of done.repeated) repeated.set(entry.id, entry);
  place.repeated.set(id, repeated);
  await trim(deps.redis, cursor, [...repeated.values()]);
  place.repeated.delete(id);
  return cursor;
}

type Moved = {
  readonly cursor: Cursor;
  /** Whether Redis is new or has lost data, and must start the epoch of the cursor. */
  readonly reopens: boolean;
  /** Entries that the ledger already had. */
  readonly repeated: readonly UsageEntry[];
};

async function moveBatch(deps: LedgerDeps, tx: Transaction, id: number): Promise<Moved | undefined> {
  const lock = tx.select().from(partitions).where(eq(partitions.id, id)).for('update', { skipLocked: true });
  const [row] = await lock;
  if (!row) return undefined;
  const cursor = { partition: id, epoch: row.epoch, lastId: row.lastId };
  const seen = await drain(deps.redis, cursor, BATCH);
  if (seen.is !== 'ok') {
    const newest = seen.is === 'epoch' ? Math.max(seen.epoch, row.epoch) : row.epoch;
    const reset = await moveCursor(tx, { ...cursor, epoch: newest + 1, lastId: '0-0' });
    return { cursor: reset, reopens: true, repeated: [] };
  }
  const last = seen.entries.at(-1);
  if (!last) return { cursor, reopens: false, repeated: [] };
  const repeated = await writeLedger(tx, seen.entries);
  return { cursor: await moveCursor(tx, { ...cursor, lastId: last.id }), reopens: false, repeated };
}

async function moveCursor(tx: Transaction, cursor: Cursor): Promise<Cursor> {
  const { epoch, lastId } = cursor;
  await tx.update(partitions).set({ epoch, lastId }).where(eq(partitions.id, cursor.partition));
  return cursor;
}
