import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Cursor,
  drain,
  groupsOf,
  type RedisClient,
  reopen,
  trim,
  type UsageEntry,
  withWork,
} from '@presign/limits';
import { ledger, partitions, type Tags } from '@presign/schema/ledger-tables';
import { budgets, grants } from '@presign/schema/tables';
import { causeOf } from '@presign/service';
import type { Database, Transaction } from '@presign/service/database';
import type { Works } from '@presign/service/metrics';
import { asc, eq, getTableColumns, inArray, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { announceBudgets } from '../events/announce-budgets.ts';
import { announceThresholds, recordSettled } from '../events/announce-settled.ts';
import type { ChangedBudget } from '../events/levels.ts';
import { markRevoked } from '../grants/mark-revoked.ts';
import { queueTombstones, repeatChanges } from '../grants/pending-changes.ts';
import { addToHours } from '../usage/call-hours.ts';
import { addLateCalls, holdMarks } from '../usage/sum-days.ts';
import { ledgerRow, type SettledEntry } from './ledger-row.ts';
import { recordEnds } from './record-ends.ts';
import { tagsOf } from './tags.ts';

type LedgerWork = { readonly work: Works<'ledger'> };
type LedgerDeps = {
  readonly db: Database;
  readonly redis: RedisClient;
  /** `epochsChanged` counts partitions whose data Redis had lost. */
  readonly metrics: { readonly epochsChanged: (partitions: number) => void } & LedgerWork;
  readonly usageMetadata: readonly string[];
  readonly log: Logger;
};

/** Entries of one partition that one transaction writes. */
const BATCH = 500;
const IDLE_MS = 1_000;
const BUSY_MS = 50;
const HELD_MS = 5;
/** A live issuer opens a new epoch in Redis within milliseconds. */
const OPENING_MS = 1_000;
/** How long a closing issuer drains. Later settles wait for another issuer. */
const CLOSING_MS = 5_000;

/** The running drainer. */
export type Ledger = {
  /** Drains until every partition is open and empty: for an orderly shutdown, and for tests. */
  readonly drainAll: (longestMs?: number) => Promise<void>;
  readonly close: () => Promise<void>;
};

/**
 * Moves settled calls from the usage streams in Redis to the ledger in Postgres, each exactly once. It also opens the
 * partitions of a Redis server that is new or has lost data. Any number of issuers may run it.
 */
export function startLedger(deps: LedgerDeps): Ledger {
  const place: Place = { cursors: new Map(), untrimmed: new Map(), opening: new Map(), reopened: 0 };
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<boolean> = Promise.resolve(false);
  let failing = false;
  const work = deps.metrics.work('ledger');

  const run = async () => {
    let wait = IDLE_MS;
    work.begins();
    try {
      round = drainRound(deps, place);
      if (await round) wait = BUSY_MS;
      work.succeeds();
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
  /** Partitions whose committed entries may still be in Redis, with the entries that the ledger already had. */
  readonly untrimmed: Map<number, ReadonlyMap<string, UsageEntry>>;
  /** Epochs that other issuers have begun, and until when Redis may lack them. */
  readonly opening: Map<number, { readonly epoch: number; readonly untilMs: number }>;
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
  const all = [...cursors.values()];
  const looked = await Promise.allSettled(
    groupsOf(deps.redis, all).map((group) => withWork(deps.redis, group)),
  );
  const working = new Set(looked.flatMap((each) => (each.status === 'fulfilled' ? each.value : [])));
  const moved = await Promise.allSettled(
    all.map((cursor) => (working.has(cursor) ? moveOn(deps, place, cursor) : trimRest(deps, place, cursor))),
  );
  const { reopened } = place;
  // Before the first await, because another round may be running.
  place.reopened = 0;
  if (reopened > 0) {
    deps.metrics.epochsChanged(reopened);
    deps.log.warn({ partitions: reopened }, 'Redis restarted or lost data: reopened from Postgres');
    await repeatChanges(deps.db);
  }
  // Waits for all of them, so that none sets a cursor after the caller has cleared the cursors.
  const failed = [...looked, ...moved].find((each) => each.status === 'rejected');
  if (failed) throw failed.reason;
  return working.size > 0;
}

async function moveOn(deps: LedgerDeps, place: Place, { partition }: Cursor): Promise<void> {
  const moved = await drainPartition(deps, place, partition);
  if (moved) place.cursors.set(partition, moved);
}

/**
 * Moves one batch of one partition under the lock of its row: ledger rows, budgets and cursor commit together, and then
 * the stream is trimmed. A crash between the two leaves entries that the cursor skips.
 * @returns the new cursor, or undefined when another issuer is draining or opening the partition
 */
async function drainPartition(deps: LedgerDeps, place: Place, id: number): Promise<Cursor | undefined> {
  const done = await deps.db.transaction((tx) => moveBatch(deps, place, tx, id));
  if (!done) return undefined;
  const { cursor, reopens } = done;
  if (reopens) {
    await reopen(deps.redis, id, cursor.epoch);
    if (cursor.epoch > 1) place.reopened += 1;
    return cursor;
  }
  const repeated = new Map(place.untrimmed.get(id));
  for (const entry of done.repeated) repeated.set(entry.id, entry);
  place.untrimmed.set(id, repeated);
  await trimRest(deps, place, cursor);
  return cursor;
}

/** Removes committed entries. If that fails, the next round does it, although there may be no further call. */
async function trimRest({ redis }: LedgerDeps, { untrimmed }: Place, cursor: Cursor): Promise<void> {
  const repeated = untrimmed.get(cursor.partition);
  if (!repeated) return;
  await trim(redis, cursor, [...repeated.values()]);
  // Another round may have added to it in the meantime.
  if (untrimmed.get(cursor.partition) === repeated) untrimmed.delete(cursor.partition);
}

type Moved = {
  readonly cursor: Cursor;
  /** Whether Redis is new or has lost data, and must start the epoch of the cursor. */
  readonly reopens: boolean;
  /** Entries that the ledger already had. */
  readonly repeated: readonly UsageEntry[];
};

async function moveBatch(
  deps: LedgerDeps,
  place: Place,
  tx: Transaction,
  id: number,
): Promise<Moved | undefined> {
  const lock = tx.select().from(partitions).where(eq(partitions.id, id)).for('update', { skipLocked: true });
  const [row] = await lock;
  if (!row) return undefined;
  const cursor = { partition: id, epoch: row.epoch, lastId: row.lastId };
  const seen = await drain(deps.redis, cursor, BATCH);
  if (seen.is !== 'ok') {
    if (isBeingOpened(place, cursor)) return undefined;
    const newest = seen.is === 'epoch' ? Math.max(seen.epoch, row.epoch) : row.epoch;
    const reset = await moveCursor(tx, { ...cursor, epoch: newest + 1, lastId: '0-0' });
    return { cursor: reset, reopens: true, repeated: [] };
  }
  const last = seen.entries.at(-1);
  if (!last) return { cursor, reopens: false, repeated: [] };
  await holdMarks(tx);
  const settled = seen.entries.filter(isSettled);
  const repeated = settled.length > 0 ? await writeLedger(tx, settled, deps.usageMetadata) : [];
  await recordEnds(tx, seen.entries);
  return { cursor: await moveCursor(tx, { ...cursor, lastId: last.id }), reopens: false, repeated };
}

/**
 * Whether another round, here or at another issuer, has just committed this epoch and may not have opened it in Redis yet. Otherwise
 * issuers that find a new Redis at the same time would each begin another epoch.
 */
function isBeingOpened({ cursors, opening }: Place, { partition, epoch }: Cursor): boolean {
  if (cursors.get(partition)?.epoch === epoch) return false;
  const known = opening.get(partition);
  if (known?.epoch === epoch) return Date.now() < known.untilMs;
  opening.set(partition, { epoch, untilMs: Date.now() + OPENING_MS });
  return true;
}

async function moveCursor(tx: Transaction, cursor: Cursor): Promise<Cursor> {
  const { epoch, lastId } = cursor;
  await tx.update(partitions).set({ epoch, lastId }).where(eq(partitions.id, cursor.partition));
  return cursor;
}

/**
 * Writes settled calls to the ledger, each hold once, and adds the new ones to their budgets.
 * @returns the entries that were not written, because the ledger already has their hold
 */
async function writeLedger(
  tx: Transaction,
  entries: readonly SettledEntry[],
  usageMetadata: readonly string[],
): Promise<readonly UsageEntry[]> {
  const calls = entries.map(ledgerRow);
  const issuers = await issuersOf(tx, calls, usageMetadata);
  const rows = calls.map((call) => ({ ...call, ...issuers.get(call.grantId) }));
  const inserted = await tx
    .insert(ledger)
    .values(rows)
    .onConflictDoNothing()
    .returning({ holdId: ledger.holdId, accountId: ledger.accountId });
  const ids = inserted.map(({ holdId }) => holdId);
  await addLateCalls(tx, ids);
  const fresh = new Set(ids.map((id) => id.replaceAll('-', '')));
  // A batch may contain a hold twice: its first entry counts.
  const isFirst = entries.map(({ holdId }) => fresh.delete(holdId));
  const counted = entries.filter((_, i) => isFirst[i]);
  const repeated = entries.filter((_, i) => !isFirst[i]);
  await addToHours(
    tx,
    rows.filter((_, i) => isFirst[i]),
  );
  await recordSettled(tx, inserted);
  const changed = await addToBudgets(tx, counted);
  await announceThresholds(tx, changed, counted);
  await announceBudgets(tx, changed);
  await endOverrun(tx, rows);
  return repeated;
}

const isSettled = (entry: UsageEntry): entry is SettledEntry => entry.outcome !== 'ended';

/** The API key that issued each grant, its virtual key and its tags. They are read here, so that calls need not store them in Redis. */
async function issuersOf(
  tx: Transaction,
  calls: readonly { readonly grantId: string }[],
  usageMetadata: readonly string[],
): Promise<ReadonlyMap<string, Issuer>> {
  const ids = [...new Set(calls.map(({ grantId }) => grantId))];
  const rows = await tx
    .select({
      id: grants.id,
      apiKeyId: grants.apiKeyId,
      virtualKeyId: grants.virtualKeyId,
      tags: tagsOf(usageMetadata),
    })
    .from(grants)
    .where(inArray(grants.id, ids));
  return new Map(rows.map(({ id, ...issuer }) => [id, issuer]));
}

type Issuer = {
  readonly apiKeyId: string | null;
  readonly virtualKeyId: string | null;
  readonly tags: Tags | null;
};

/** Adds new entries to their budgets. Returns the budgets after the change. */
async function addToBudgets(tx: Transaction, counted: readonly UsageEntry[]): Promise<ChangedBudget[]> {
  const sums = sumByBudget(counted);
  if (sums.length === 0) return [];
  // In a fixed order, whatever the order of the join, so that two transactions that lock several budgets never
  // deadlock.
  const ids = sums.map(({ id }) => id);
  await tx
    .select({ id: budgets.id })
    .from(budgets)
    .where(inArray(budgets.id, ids))
    .orderBy(asc(budgets.id))
    .for('no key update');
  return tx
    .update(budgets)
    .set({
      used: sql`${budgets.used} + each.used`,
      settledMicrousd: sql`${budgets.settledMicrousd} + each.settled`,
      usedTokens: sql`${budgets.usedTokens} + each.tokens`,
    })
    .from(
      sql`json_to_recordset(${JSON.stringify(sums)}::json) as each(id uuid, used bigint, settled bigint, tokens bigint)`,
    )
    .where(sql`${budgets.id} = each.id`)
    .returning(getTableColumns(budgets));
}

/**
 * Revokes a live grant whose call cost more than its worst case, because a price or a bound must be wrong. The gateway has already ended
 * the grant in Redis, unless it died. This locks grants after sessions, in the same order as a session's revocation, so that the two never
 * deadlock.
 */
async function endOverrun(tx: Transaction, rows: readonly ReturnType<typeof ledgerRow>[]): Promise<void> {
  const over = rows.filter((row) => row.overrunMicrousd > 0).map((row) => row.grantId);
  if (over.length === 0) return;
  const ended = await markRevoked(tx, inArray(grants.id, over), sql`now()`, 'overrun');
  if (ended.length > 0) await queueTombstones(tx, inArray(grants.id, [...ended]), new Date());
}

type Sum = { readonly id: string; used: number; settled: number; tokens: number };

function sumByBudget(entries: readonly UsageEntry[]): Sum[] {
  const sums = new Map<string, Sum>();
  for (const entry of entries) {
    for (const id of entry.budgetIds) {
      const sum = sums.get(id) ?? { id, used: 0, settled: 0, tokens: 0 };
      sum.used += entry.uses;
      sum.settled += entry.costMicrousd ?? 0;
      sum.tokens += entry.tokens;
      sums.set(id, sum);
    }
  }
  return [...sums.values()];
}
