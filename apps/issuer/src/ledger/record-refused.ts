import { type RedisClient, type Refused, readRefused, trimRefused, withRefused } from '@presign/limits';
import { PARTITIONS, type RefusedEntry, refusedEntry } from '@presign/schema';
import { refusalDays, refusedCalls, refusedMarks } from '@presign/schema/ledger-tables';
import { grants } from '@presign/schema/tables';
import type { Database, TextRow, Transaction } from '@presign/service/database';
import { and, eq, gte, inArray, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { type RefusedDays, refusedDays } from './refused-days.ts';
import { tagsOf } from './tags.ts';

type Deps = {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly log: Pick<Logger, 'warn'>;
  readonly usageMetadata: readonly string[];
};

/** Entries of one partition that one transaction writes, each with at most ten calls. */
const BATCH = 100;
/** The most names for an account on a day. Holders choose names, so calls with further names count as `other`. */
const NAMES_MAX = 200;
/** The longest wait of a refused call at its gateway, as the gateway states it. */
const LONGEST_MS = 86_400_000;

/**
 * Makes a task that moves refused calls from the streams in Redis to Postgres, each exactly once. Any number of issuers may run it.
 * @returns whether there may be more
 */
export function recordRefused(deps: Deps): () => Promise<boolean> {
  const days = refusedDays(deps.db);
  return async () => {
    const waiting = await withRefused(deps.redis, PARTITIONS);
    const moved = await Promise.allSettled(waiting.map((each) => movePartition(deps, days, each)));
    const failed = moved.find((each) => each.status === 'rejected');
    if (!failed) return moved.some((each) => each.status === 'fulfilled' && each.value);
    // A day that existed may be missing.
    days.forget();
    throw failed.reason;
  };
}

/** The readable part of an entry, and when Redis received it. */
type Read = { readonly entry: RefusedEntry; readonly atMs: number };

/** Moves one batch of a partition. Returns whether there may be more. */
async function movePartition(
  { db, redis, log, usageMetadata }: Deps,
  days: RefusedDays,
  partition: number,
): Promise<boolean> {
  const lastId = await readMark(db, partition);
  const seen = await readRefused(redis, partition, lastId, BATCH);
  const newest = seen.at(-1)?.id;
  const read = seen.flatMap((each) => readEntry(each, log));
  await days.make(read.flatMap(({ entry, atMs }) => entry.kept.map((call) => timeOf(call.ago, atMs))));
  const write = async (tx: Transaction, newest: string) => {
    // If several issuers have read the same batch, only one moves the mark.
    const isUnmoved = and(eq(refusedMarks.partition, partition), eq(refusedMarks.lastId, lastId));
    const [moved] = await tx.update(refusedMarks).set({ lastId: newest }).where(isUnmoved).returning();
    if (moved) await writeRefused(tx, read, usageMetadata);
    return moved !== undefined;
  };
  const isMoved = newest === undefined || (await db.transaction((tx) => write(tx, newest)));
  // An earlier trim may have failed.
  if (isMoved) await trimRefused(redis, partition, newest ?? lastId);
  return seen.length === BATCH;
}

async function readMark(db: Database, partition: number): Promise<string> {
  const isIt = eq(refusedMarks.partition, partition);
  const [mark] = await db.select().from(refusedMarks).where(isIt);
  if (mark) return mark.lastId;
  await db.insert(refusedMarks).values({ partition, lastId: '0-0' }).onConflictDoNothing();
  return '0-0';
}

/** An unreadable entry is skipped, so that it stops nothing. */
function readEntry({ id, entry }: Refused, log: Deps['log']): Read[] {
  try {
    // A stream id starts with the clock of Redis in milliseconds.
    return [{ entry: refusedEntry.parse(JSON.parse(entry)), atMs: Number(id.split('-')[0]) }];
  } catch {
    log.warn('a refused call could not be read, and is left out');
    return [];
  }
}

const timeOf = (ago: number, atMs: number): Date => new Date(atMs - Math.min(ago, LONGEST_MS));

async function writeRefused(
  tx: Transaction,
  read: readonly Read[],
  usageMetadata: readonly string[],
): Promise<void> {
  const owners = await ownersOf(
    tx,
    read.map(({ entry }) => entry.grt),
    usageMetadata,
  );
  const all = read.flatMap(({ entry, atMs }) => {
    const owner = owners.get(entry.grt);
    return owner ? entry.kept.map((call) => rowOf(entry, call, owner, atMs)) : [];
  });
  const rows = await withoutKnown(tx, all);
  for (let i = 0; i < rows.length; i += ROWS)
    await tx
      .insert(refusedCalls)
      .values(rows.slice(i, i + ROWS))
      .onConflictDoNothing();
  await addSums(
    tx,
    read.flatMap(({ entry, atMs }) => {
      const owner = owners.get(entry.grt);
      const day = new Date(atMs).toISOString().slice(0, 10);
      return owner
        ? [{ accountId: owner.accountId, day, code: entry.cod, name: entry.nam ?? '', calls: entry.n }]
        : [];
    }),
  );
}

type Row = typeof refusedCalls.$inferInsert;

/**
 * The rows without those that are written already. A gateway sends calls again if the answer of Redis was lost, and then they have another
 * time.
 */
async function withoutKnown(tx: Transaction, rows: readonly Row[]): Promise<Row[]> {
  const fresh = new Map(rows.map((row) => [row.requestId, row]));
  if (fresh.size === 0) return [];
  const oldest = Math.min(...rows.map(({ refusedAt }) => refusedAt.getTime()));
  const known = await tx
    .select({ requestId: refusedCalls.requestId })
    .from(refusedCalls)
    .where(
      and(
        inArray(refusedCalls.requestId, [...fresh.keys()]),
        gte(refusedCalls.refusedAt, new Date(oldest - LONGEST_MS)),
      ),
    );
  for (const { requestId } of known) fresh.delete(requestId);
  return [...fresh.values()];
}

/** Rows of one statement: it may have 65,535 values. */
const ROWS = 500;

type Owner = Awaited<ReturnType<typeof ownersOf>> extends ReadonlyMap<string, infer O> ? O : never;

async function ownersOf(tx: Transaction, ids: readonly string[], usageMetadata: readonly string[]) {
  if (ids.length === 0) return new Map<string, never>();
  const rows = await tx
    .select({
      id: grants.id,
      accountId: grants.accountId,
      sessionId: grants.sessionId,
      apiKeyId: grants.apiKeyId,
      virtualKeyId: grants.virtualKeyId,
      externalUser: grants.externalUser,
      provider: grants.provider,
      server: grants.server,
      tags: tagsOf(usageMetadata),
    })
    .from(grants)
    .where(inArray(grants.id, [...new Set(ids)]));
  return new Map(rows.map((row) => [row.id, row]));
}

function rowOf(
  { grt, cod, nam }: RefusedEntry,
  { rid, ago, sta, rsn, mod, tol, fig, con, trn, siz }: RefusedEntry['kept'][number],
  { accountId, sessionId, apiKeyId, virtualKeyId, externalUser, tags, provider, server }: Owner,
  atMs: number,
): Row {
  return {
    requestId: rid,
    refusedAt: timeOf(ago, atMs),
    accountId,
    sessionId,
    grantId: grt,
    apiKeyId,
    virtualKeyId,
    externalUser,
    tags,
    provider,
    server: server?.name ?? null,
    model: storable(mod),
    tool: storable(tol),
    status: sta,
    code: cod,
    reason: rsn ?? null,
    name: storable(nam),
    figures: fig || con ? { ...fig, connection: con, turn: trn } : null,
    bodyBytes: siz ?? null,
  };
}

/** A holder chooses names of tools. Postgres refuses NUL in a text. */
const storable = (text: string | undefined) => text?.replaceAll('\0', '') ?? null;

type DaySum = {
  readonly accountId: string;
  readonly day: string;
  readonly code: string;
  name: string;
  calls: number;
};

/** Adds calls to the sums of their days in a fixed order, so that two transactions never deadlock. */
async function addSums(tx: Transaction, added: readonly DaySum[]): Promise<void> {
  const full = await fullDays(tx, added);
  const sums = new Map<string, DaySum>();
  for (const each of added) {
    const isOver = each.name !== '' && full.has(`${each.accountId} ${each.day}`);
    const name = isOver ? 'other' : (storable(each.name) ?? '');
    // A call with a name counts for its code, too.
    for (const of of new Set(['', name])) {
      const key = JSON.stringify([each.accountId, each.day, each.code, of]);
      const sum = sums.get(key) ?? { ...each, name: of, calls: 0 };
      sum.calls += each.calls;
      sums.set(key, sum);
    }
  }
  if (sums.size === 0) return;
  const rows = [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, sum]) => ({ ...sum, calls: String(sum.calls) }));
  await tx
    .insert(refusalDays)
    .values(rows)
    .onConflictDoUpdate({
      target: [refusalDays.accountId, refusalDays.day, refusalDays.code, refusalDays.name],
      set: { calls: sql`${refusalDays.calls} + excluded.calls` },
    });
}

/** The accounts and days that have their maximum of names. */
async function fullDays(tx: Transaction, added: readonly DaySum[]): Promise<ReadonlySet<string>> {
  const named = added.filter(({ name }) => name !== '');
  if (named.length === 0) return new Set();
  const rows = await tx.execute<TextRow>(sql`
    select account_id::text || ' ' || day::text as day from ${refusalDays}
    where ${inArray(refusalDays.accountId, [...new Set(named.map(({ accountId }) => accountId))])}
      and ${inArray(refusalDays.day, [...new Set(named.map(({ day }) => day))])} and ${refusalDays.name} <> ''
    group by account_id, day having count(*) >= ${NAMES_MAX}`);
  return new Set(rows.map((row) => row['day'] ?? ''));
}
