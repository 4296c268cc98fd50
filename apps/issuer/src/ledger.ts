import { type Cursor, drain, type RedisClient, reopen, trim, type UsageEntry } from '@presign/limits';
import { callRecord } from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { ledger, partitions, pots } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import type { Logger } from 'pino';

type LedgerDeps = { readonly db: Database; readonly redis: RedisClient; readonly log: Logger };

/** Entries of one partition that one transaction writes. */
const BATCH = 500;
const IDLE_MS = 1_000;
const BUSY_MS = 50;

/** The running drainer. */
export type Ledger = {
  /** Drains until every partition is open and empty: for an orderly end, and for tests. */
  readonly drainAll: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/**
 * Moves settled calls from the Redis usage streams to the Postgres ledger, each exactly once, and opens
 * partitions of a Redis that is new or has lost data. Any number of issuers may run it.
 */
export function startLedger(deps: LedgerDeps): Ledger {
  const cursors = new Map<number, Cursor>();
  let timer: NodeJS.Timeout | undefined;
  let round: Promise<boolean> = Promise.resolve(false);
  let failing = false;

  const run = async () => {
    let wait = IDLE_MS;
    try {
      round = drainRound(deps, cursors);
      if (await round) wait = BUSY_MS;
      if (failing) deps.log.info('ledger caught up again');
      failing = false;
    } catch (error) {
      cursors.clear();
      if (!failing)
        deps.log.error({ error: error instanceof Error ? error.name : 'unknown' }, 'ledger is behind');
      failing = true;
    }
    if (!closed) timer = setTimeout(run, wait);
  };
  let closed = false;
  const running = run();

  const drainAll = async () => {
    while (await drainRound(deps, cursors));
  };
  const close = async () => {
    closed = true;
    clearTimeout(timer);
    await running;
    await round.catch(() => {});
    await drainAll().catch(() => deps.log.warn('ledger not drained to the end; the rest waits in Redis'));
  };
  return { drainAll, close };
}

/** Looks at every partition once; returns whether any had something to do. */
async function drainRound(deps: LedgerDeps, cursors: Map<number, Cursor>): Promise<boolean> {
  if (cursors.size === 0) {
    for (const row of await deps.db.select().from(partitions))
      cursors.set(row.id, { ...row, partition: row.id });
  }
  const worked = await Promise.all(
    [...cursors.values()].map(async (cursor) => {
      const seen = await drain(deps.redis, cursor, 1);
      if (seen.is === 'ok' && seen.entries.length === 0) return false;
      const moved = await drainPartition(deps, cursor.partition);
      if (moved) cursors.set(cursor.partition, moved);
      return moved !== undefined;
    }),
  );
  return worked.includes(true);
}

/**
 * One batch of one partition, under its row's lock: ledger rows, pots and cursor commit together, then the
 * stream is trimmed. A crash between the two leaves entries that the cursor passes over.
 * @returns the new cursor, or undefined when another issuer has the partition
 */
async function drainPartition(deps: LedgerDeps, id: number): Promise<Cursor | undefined> {
  const done = await deps.db.transaction(async (tx) => {
    const [row] = await tx
      .select()
      .from(partitions)
      .where(eq(partitions.id, id))
      .for('update', { skipLocked: true });
    if (!row) return undefined;
    const cursor = { partition: id, epoch: row.epoch, lastId: row.lastId };
    const seen = await drain(deps.redis, cursor, BATCH);
    if (seen.is !== 'ok') {
      const newer = seen.is === 'epoch' ? Math.max(seen.epoch, row.epoch) : row.epoch;
      return { ...(await moveCursor(tx, { ...cursor, epoch: newer + 1, lastId: '0-0' })), reopens: true };
    }
    const last = seen.entries.at(-1);
    if (!last) return { ...cursor, reopens: false };
    await write(tx, seen.entries);
    return { ...(await moveCursor(tx, { ...cursor, lastId: last.id })), reopens: false };
  });
  if (!done) return undefined;
  const { reopens, ...cursor } = done;
  if (!reopens) await trim(deps.redis, cursor);
  else {
    if (cursor.epoch > 1) deps.log.warn({ partition: id, epoch: cursor.epoch }, 'Redis lost data; restoring');
    await reopen(deps.redis, id, cursor.epoch);
  }
  return cursor;
}

async function moveCursor(tx: Transaction, cursor: Cursor): Promise<Cursor> {
  const { epoch, lastId } = cursor;
  await tx.update(partitions).set({ epoch, lastId }).where(eq(partitions.id, cursor.partition));
  return cursor;
}

async function write(tx: Transaction, entries: readonly UsageEntry[]): Promise<void> {
  const inserted = await tx
    .insert(ledger)
    .values(entries.map(ledgerRow))
    .onConflictDoNothing()
    .returning({ holdId: ledger.holdId });
  const fresh = new Set(inserted.map((row) => row.holdId.replaceAll('-', '')));
  const sums = sumByPot(entries.filter((entry) => fresh.has(entry.holdId)));
  if (sums.length === 0) return;
  await tx.execute(sql`
    update ${pots} set used = ${pots.used} + each.used, settled_microusd = ${pots.settledMicrousd} + each.settled
    from json_to_recordset(${JSON.stringify(sums)}::json) as each(id uuid, used bigint, settled bigint)
    where ${pots.id} = each.id`);
}

function sumByPot(entries: readonly UsageEntry[]): { id: string; used: number; settled: number }[] {
  const sums = new Map<string, { id: string; used: number; settled: number }>();
  for (const entry of entries) {
    for (const id of entry.potIds) {
      const sum = sums.get(id) ?? { id, used: 0, settled: 0 };
      sum.used += entry.uses;
      sum.settled += entry.costMicrousd ?? 0;
      sums.set(id, sum);
    }
  }
  // One order for all issuers, so that two transactions never wait for each other's pots.
  return [...sums.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function ledgerRow(entry: UsageEntry) {
  const record = callRecord.parse(JSON.parse(entry.record));
  return {
    holdId: entry.holdId,
    accountId: record.acc,
    sessionId: record.ses,
    grantId: record.grt,
    provider: record.prv,
    model: record.mod ?? null,
    externalUser: record.usr ?? null,
    uses: entry.uses,
    costMicrousd: entry.costMicrousd ?? null,
    status: record.sta ?? null,
    outcome: entry.outcome,
    startedAt: new Date(record.beg),
    // A stream id begins with Redis' clock in milliseconds.
    settledAt: new Date(Number(entry.id.split('-')[0])),
  };
}
