import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { KeptTable } from '@presign/schema/tables';
import { causeOf } from '@presign/service';
import type { Database } from '@presign/service/database';
import { and, eq, isNull, sql } from 'drizzle-orm';
import { type Dispatcher, request } from 'undici';

import { LIST_MAX_BYTES, ListError, type Listed, listId, type Origin, TOO_LARGE } from './listed.ts';

/** Where an operator's list is. */
export type ListSource =
  | { readonly is: 'file'; readonly path: string }
  | { readonly is: 'url'; readonly url: string };

/** Where an operator's list is and how often it is read. */
export type ListSchedule = {
  /** Undefined: the bundled one is the only one. */
  readonly source: ListSource | undefined;
  readonly everyMs: number;
};

export const NO_SOURCE: ListSchedule = { source: undefined, everyMs: 0 };

/** A kind of lists that an operator keeps current: prices, knowledge. */
export type ListKind<T extends Listed, L> = {
  readonly table: KeptTable;
  /** @throws ListError when the text is not a list of this kind */
  readonly read: (text: string, origin: Origin) => T;
  /**
   * The entries of a newer list that lower a bound or a price by much. A list with such entries is used only after the
   * operator accepts it.
   */
  readonly loosened: (before: T, after: T, now: number) => Promise<readonly L[]> | readonly L[];
  readonly logged: { readonly inUse: string; readonly notRead: string; readonly waits: string };
};

/** The operator's lists in use: the last one that may count alone, and a newer one that waits. */
export type Kept<T> = {
  readonly lists: { readonly good: T; readonly offered: T | undefined } | undefined;
  /** Why the source or the store could not be read, as the rest of a sentence. */
  readonly problem: string | undefined;
};

export type ListKeeper<T> = {
  readonly current: () => Kept<T>;
  /** Reads the source now. It never throws: `current` says what is wrong. */
  readonly refresh: () => Promise<void>;
  readonly close: () => Promise<void>;
};

type Log = { readonly [level in 'info' | 'warn' | 'error']: (fields: object, message: string) => void };

export type KeepList = ListSchedule & {
  readonly db: Database;
  /** Reaches public addresses only. */
  readonly dispatcher: Dispatcher;
  /** How long the source may take to send the whole list, where that is not 20 s. */
  readonly sourceMs?: number;
  readonly now: () => number;
  readonly log: Log;
};

type Keep<T extends Listed> = KeepList & {
  readonly kind: ListKind<T, unknown>;
  /** The fields of a log line about the lists. */
  readonly describe: (kept: Kept<T>) => object;
  /** Called when other lists are in use than before. */
  readonly changed?: (kept: Kept<T>) => void;
};

/**
 * Reads the operator's list, and again every `everyMs`. The last list that loosens nothing is stored in Postgres for all services. Services
 * use it while the source does not answer.
 */
export async function keepList<T extends Listed>(keep: Keep<T>): Promise<ListKeeper<T>> {
  const { source, everyMs, log, kind, describe, changed } = keep;
  let used: Kept<T> = { lists: undefined, problem: undefined };
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  const read = async (from: ListSource) => {
    const before = used;
    used = await readAgain(keep, from, before);
    const isOther = idsOf(used) !== idsOf(before);
    if (isOther) changed?.(used);
    if (used.problem !== undefined && used.problem !== before.problem) {
      log.error({ problem: used.problem, ...describe(used) }, kind.logged.notRead);
    } else if (isOther || (before.problem && !used.problem)) {
      log.info(describe(used), kind.logged.inUse);
    }
  };
  let running: Promise<void> = Promise.resolve();
  const refresh = () => {
    if (source) running = running.then(() => read(source));
    return running;
  };
  const schedule = () => {
    timer = setTimeout(() => refresh().then(() => closed || schedule()), everyMs);
    timer.unref();
  };
  if (source) {
    await refresh();
    schedule();
  } else log.info(describe(used), kind.logged.inUse);
  const close = async () => {
    closed = true;
    clearTimeout(timer);
    await running;
  };
  return { current: () => used, refresh, close };
}

const idsOf = <T extends Listed>({ lists }: Kept<T>): string => `${lists?.good.id} ${lists?.offered?.id}`;

/** Reads the source, and then the store. If one of them cannot be read, its lists stay in use. */
async function readAgain<T extends Listed>(
  keep: Keep<T>,
  source: ListSource,
  before: Kept<T>,
): Promise<Kept<T>> {
  const text = await readSource(keep, source).catch((error: unknown) => new Error(problemOf(error)));
  try {
    const key = storeKey(source);
    let problem: string | undefined;
    if (text instanceof Error) problem = text.message;
    else problem = await store(keep, key, text).catch((error: unknown) => unusable(error));
    return { lists: await load(keep, source, key, before.lists), problem };
  } catch (error) {
    if (error instanceof StoredError) return { ...before, problem: error.message };
    return { ...before, problem: `Postgres does not answer (${causeOf(error).error})` };
  }
}

/** A list that another version stored, and that this one cannot read. */
class StoredError extends Error {}

function readStored<T extends Listed>(
  { read }: Pick<ListKind<T, unknown>, 'read'>,
  text: string,
  origin: Origin,
): T {
  try {
    return read(text, origin);
  } catch (error) {
    throw error instanceof ListError ? new StoredError(`the stored list ${error.message}`) : error;
  }
}

/** A list that cannot be used is a problem of the source; every other error is one of Postgres. */
function unusable(error: unknown): string {
  if (error instanceof ListError) return `the source ${error.message}`;
  throw error;
}

/** One row for each source. An address may hold a secret, so its hash names it. */
const storeKey = (source: ListSource) => (source.is === 'file' ? 'file' : `url:${listId(source.url)}`);

/**
 * Stores a list that was read: as the good one, or as an offered one when it loosens something. Other services may store at
 * the same time. The first of them wins, and the others see its row.
 */
async function store<T extends Listed>(
  { db, now, log, kind }: Keep<T>,
  source: string,
  text: string,
): Promise<undefined> {
  const { table } = kind;
  const state = { id: table.id, offeredId: table.offeredId };
  const id = listId(text);
  const at = new Date(now());
  const [row] = await db.select(state).from(table).where(eq(table.source, source));
  if (!row) {
    kind.read(text, UNDATED);
    await db.insert(table).values({ source, id, list: text, datedAt: at }).onConflictDoNothing();
    return;
  }
  if (id === row.offeredId) return;
  const same = and(
    eq(table.source, source),
    eq(table.id, row.id),
    row.offeredId === null ? isNull(table.offeredId) : eq(table.offeredId, row.offeredId),
  );
  const none = { offeredId: null, offered: null, offeredAt: null };
  if (id === row.id) {
    if (row.offeredId !== null) await db.update(table).set(none).where(same);
    return;
  }
  const after = kind.read(text, UNDATED);
  const [kept] = await db.select({ list: table.list }).from(table).where(same);
  if (!kept) return;
  const loosened = await kind.loosened(readStored(kind, kept.list, UNDATED), after, now());
  if (loosened.length === 0) {
    await db
      .update(table)
      .set({ id, list: text, datedAt: at, ...none })
      .where(same);
    return;
  }
  log.warn({ list: id, entries: loosened.length }, kind.logged.waits);
  await db.update(table).set({ offeredId: id, offered: text, offeredAt: at }).where(same);
}

const UNDATED = { source: 'file', date: '' } as const;

/** The stored lists. Lists that are in use already are not loaded again. */
async function load<T extends Listed>(
  { db, kind }: Keep<T>,
  source: ListSource,
  key: string,
  before: Kept<T>['lists'],
): Promise<Kept<T>['lists']> {
  const { table } = kind;
  const state = { id: table.id, offeredId: table.offeredId };
  const [found] = await db.select(state).from(table).where(eq(table.source, key));
  if (!found) return before;
  if (found.id === before?.good.id && found.offeredId === (before.offered?.id ?? null)) return before;
  const [row] = await db.select().from(table).where(eq(table.source, key));
  return row ? listsOf(kind, row, source.is) : before;
}

function listsOf<T extends Listed>(
  kind: Pick<ListKind<T, unknown>, 'read'>,
  { list, datedAt, offered, offeredAt }: KeptTable['$inferSelect'],
  source: ListSource['is'],
): NonNullable<Kept<T>['lists']> {
  const dated = (at: Date) => ({ source, date: at.toISOString().slice(0, 10) });
  return {
    good: readStored(kind, list, dated(datedAt)),
    offered: offered === null ? undefined : readStored(kind, offered, dated(offeredAt ?? datedAt)),
  };
}

/** A stored list, and the one that waits next to it, with what it loosens. */
export type Stored<T, L> = {
  readonly source: ListSource['is'];
  readonly good: T;
  readonly waiting: (T & { readonly loosened: readonly L[] }) | undefined;
};

/** All stored lists of a kind. */
export async function storedLists<T extends Listed, L>(
  kind: ListKind<T, L>,
  db: Database,
  now: number,
): Promise<readonly Stored<T, L>[]> {
  const rows = await db.select().from(kind.table);
  return Promise.all(
    rows.map(async (row) => {
      const source = row.source === 'file' ? 'file' : 'url';
      const { good, offered } = listsOf(kind, row, source);
      const waiting = offered && { ...offered, loosened: await kind.loosened(good, offered, now) };
      return { source, good, waiting };
    }),
  );
}

/**
 * Accepts a list that waits.
 * @returns false when no list of this id waits
 */
export async function acceptList(
  { table }: Pick<ListKind<never, unknown>, 'table'>,
  db: Database,
  id: string,
): Promise<boolean> {
  const { offered, offeredAt, offeredId } = table;
  const accepted = await db
    .update(table)
    .set({
      id: sql`${offeredId}`,
      list: sql`${offered}`,
      datedAt: sql`${offeredAt}`,
      offeredId: null,
      offered: null,
      offeredAt: null,
    })
    .where(eq(offeredId, id))
    .returning({ id: table.id });
  return accepted.length > 0;
}

const SOURCE_MS = 20_000;

/** Reads the whole source, up to the first chunk beyond the size of a list. */
export async function readSource(
  { dispatcher, sourceMs = SOURCE_MS }: KeepList,
  source: ListSource,
): Promise<string> {
  const signal = AbortSignal.timeout(sourceMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  const from =
    source.is === 'file' ? await open(source.path, signal) : await get(source.url, dispatcher, signal);
  for await (const chunk of from as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > LIST_MAX_BYTES) throw new ListError(TOO_LARGE);
  }
  return decode(Buffer.concat(chunks));
}

/** Opening a pipe waits for its writer, and no signal ends that wait. */
async function open(path: string, signal: AbortSignal) {
  if (!(await stat(path)).isFile()) throw new ListError('is no file');
  return createReadStream(path, { signal });
}

/** A redirect could lead anywhere, so it is refused like every answer that is not 200. */
async function get(url: string, dispatcher: Dispatcher, signal: AbortSignal) {
  const headers = { accept: 'application/json, text/plain', 'accept-encoding': 'identity' };
  const { statusCode, body } = await request(url, { dispatcher, signal, headers });
  if (statusCode === 200) return body;
  // Node ends the process if an error has no listener. Ending a body early raises such an error.
  body.on('error', () => {}).destroy();
  throw new ListError(`answers ${statusCode}`);
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ListError('is not UTF-8');
  }
}

/** The problem without an address or a path, because others than the operator may read the log. */
function problemOf(error: unknown): string {
  if (error instanceof ListError) return `the source ${error.message}`;
  const { error: name, ...cause } = causeOf(error);
  return `the source cannot be read (${'code' in cause ? cause.code : name})`;
}
