import { createReadStream } from 'node:fs';
import { causeOf, type Problem } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { priceLists } from '@presign/schema/tables';
import { and, eq, isNull, sql } from 'drizzle-orm';
import { type Dispatcher, request } from 'undici';

import {
  LIST_MAX_BYTES,
  listId,
  type PriceList,
  PriceListError,
  readPriceList,
  TOO_LARGE,
} from './price-list.ts';
import { BUNDLED_PRICES, type Drop, largeDrops, type Prices } from './prices.ts';

/** Where the operator's list is. */
export type PriceSource =
  | { readonly is: 'file'; readonly path: string }
  | { readonly is: 'url'; readonly url: string };

/** The prices of a running service. */
export type PriceKeeper = {
  readonly current: () => Prices;
  readonly status: () => PriceStatus;
  /** Reads the source now. It never throws: `status` says what is wrong. */
  readonly refresh: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export type PriceStatus = {
  /** The lists in use, in the order in which they decide. */
  readonly lists: readonly (Pick<PriceList, 'source' | 'id' | 'date'> & {
    /** It has large drops that wait for the operator. Until then only its dearer prices count. */
    readonly waits: boolean;
  })[];
  /** Why the source or the store could not be read, as the rest of a sentence. */
  readonly problem: string | undefined;
};

type Log = { readonly [level in 'info' | 'warn' | 'error']: (fields: object, message: string) => void };

/** Where the operator's list is and how often it is read. */
export type PriceSchedule = {
  /** Undefined: the bundled list is the only one. */
  readonly source: PriceSource | undefined;
  readonly everyMs: number;
};

export const NO_SOURCE: PriceSchedule = { source: undefined, everyMs: 0 };

export type KeepPrices = PriceSchedule & {
  readonly db: Database;
  /** Reaches public addresses only. */
  readonly dispatcher: Dispatcher;
  /** How long the source may take to send the whole list, where that is not 20 s. */
  readonly sourceMs?: number;
  readonly now: () => number;
  readonly log: Log;
};

/**
 * Reads the operator's list, and again every `everyMs`. The last list without a large drop is kept in Postgres for all
 * services. It is used while the source does not answer. If no list was ever read, no listed model has a price,
 * because the bundled prices could be too low.
 */
export async function keepPrices(keep: KeepPrices): Promise<PriceKeeper> {
  const { source, everyMs, log } = keep;
  let used: Used = { lists: undefined, problem: undefined };
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  const read = async (from: PriceSource) => {
    const before = used;
    used = await readAgain(keep, from, before);
    if (used.problem !== undefined && used.problem !== before.problem) {
      log.error({ problem: used.problem, ...logged(used, source) }, 'prices are not refreshed');
    } else if (
      pricesOf(used, source).id !== pricesOf(before, source).id ||
      (before.problem && !used.problem)
    ) {
      log.info(logged(used, source), 'prices in use');
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
  } else log.info(logged(used, source), 'prices in use');
  const close = async () => {
    closed = true;
    clearTimeout(timer);
    await running;
  };
  return { current: () => pricesOf(used, source), status: () => statusOf(used, source), refresh, close };
}

/** The operator's lists in use. */
type Used = {
  readonly lists: { readonly good: PriceList; readonly offered: PriceList | undefined } | undefined;
  readonly problem: string | undefined;
};

const remembered = new WeakMap<object, Prices>();

function pricesOf({ lists }: Used, source: PriceSource | undefined): Prices {
  if (!source) return BUNDLED_PRICES;
  if (!lists) return NO_PRICES;
  const known = remembered.get(lists);
  if (known) return known;
  const own = [lists.good, ...(lists.offered ? [lists.offered] : [])];
  const prices = { id: own.map(({ id }) => id).join('+'), layers: [own, ...BUNDLED_PRICES.layers] };
  remembered.set(lists, prices);
  return prices;
}

const NO_PRICES: Prices = { id: 'none', layers: [] };

function statusOf(used: Used, source: PriceSource | undefined): PriceStatus {
  const lists = pricesOf(used, source).layers.flat();
  return {
    lists: lists.map((list) => ({
      ...{ source: list.source, id: list.id, date: list.date },
      waits: list === used.lists?.offered,
    })),
    problem: used.problem,
  };
}

/** The problems of a service's prices, for its `/readyz`. */
export function priceProblems({ lists, problem }: PriceStatus): readonly Problem[] {
  const effect = lists.length > 0 ? LAST_LIST : NO_LIST;
  return [
    ...(problem === undefined ? [] : [{ store: 'prices', problem, effect } as const]),
    ...(lists.some((list) => list.waits) ? [DROPS_WAIT] : []),
  ];
}

const LAST_LIST = 'The last list that was read is in use.';

const NO_LIST = 'Calls under a spend limit get 422 price_unknown, unless PROVIDERS_FILE has the price.';

const DROPS_WAIT: Problem = {
  store: 'prices',
  problem: 'have large drops that wait for "presign prices accept"',
  effect: 'The dearer of the old and the new price of a model counts.',
};

const logged = (used: Used, source: PriceSource | undefined) => ({ lists: statusOf(used, source).lists });

/** Reads the source, and then the store. If one of them cannot be read, its lists stay in use. */
async function readAgain(keep: KeepPrices, source: PriceSource, before: Used): Promise<Used> {
  const text = await readSource(keep, source).catch((error: unknown) => new Error(problemOf(error)));
  try {
    const key = storeKey(source);
    let problem: string | undefined;
    if (text instanceof Error) problem = text.message;
    else problem = await store(keep, key, text).catch((error: unknown) => unusable(error));
    return { lists: await load(keep, source, key, before.lists), problem };
  } catch (error) {
    return { ...before, problem: `Postgres does not answer (${causeOf(error).error})` };
  }
}

/** A list that cannot be used is a problem of the source; every other error is one of Postgres. */
function unusable(error: unknown): string {
  if (error instanceof PriceListError) return `the source ${error.message}`;
  throw error;
}

/** One row for each source. An address may hold a secret, so its hash names it. */
const storeKey = (source: PriceSource) => (source.is === 'file' ? 'file' : `url:${listId(source.url)}`);

/**
 * Stores a list that was read: as the good one, or as an offered one when prices drop by much. Other services may store at
 * the same time. The first of them wins, and the others see its row.
 */
async function store({ db, now, log }: KeepPrices, source: string, text: string): Promise<undefined> {
  const id = listId(text);
  const at = new Date(now());
  const [row] = await db.select(STATE).from(priceLists).where(eq(priceLists.source, source));
  if (!row) {
    readPriceList(text, UNDATED);
    await db.insert(priceLists).values({ source, id, list: text, datedAt: at }).onConflictDoNothing();
    return;
  }
  if (id === row.offeredId) return;
  const same = and(
    eq(priceLists.source, source),
    eq(priceLists.id, row.id),
    row.offeredId === null ? isNull(priceLists.offeredId) : eq(priceLists.offeredId, row.offeredId),
  );
  const none = { offeredId: null, offered: null, offeredAt: null };
  if (id === row.id) {
    if (row.offeredId !== null) await db.update(priceLists).set(none).where(same);
    return;
  }
  const after = readPriceList(text, UNDATED);
  const [kept] = await db.select({ list: priceLists.list }).from(priceLists).where(same);
  if (!kept) return;
  const drops = await largeDrops(readPriceList(kept.list, UNDATED), after, now());
  if (drops.length === 0) {
    await db
      .update(priceLists)
      .set({ id, list: text, datedAt: at, ...none })
      .where(same);
    return;
  }
  log.warn({ list: id, drops: drops.length }, 'large price drops wait for: presign prices accept');
  await db.update(priceLists).set({ offeredId: id, offered: text, offeredAt: at }).where(same);
}

const STATE = { id: priceLists.id, offeredId: priceLists.offeredId };
const UNDATED = { source: 'file', date: '' } as const;

/** The stored lists. Lists that are in use already are not loaded again. */
async function load(
  { db }: KeepPrices,
  source: PriceSource,
  key: string,
  before: Used['lists'],
): Promise<Used['lists']> {
  const [state] = await db.select(STATE).from(priceLists).where(eq(priceLists.source, key));
  if (!state) return before;
  if (state.id === before?.good.id && state.offeredId === (before.offered?.id ?? null)) return before;
  const [row] = await db.select().from(priceLists).where(eq(priceLists.source, key));
  if (!row) return before;
  return listsOf(row, source.is);
}

function listsOf(
  row: typeof priceLists.$inferSelect,
  source: PriceList['source'],
): NonNullable<Used['lists']> {
  const { datedAt, offered, offeredAt } = row;
  const dated = (at: Date) => ({ source, date: at.toISOString().slice(0, 10) });
  return {
    good: readPriceList(row.list, dated(datedAt)),
    offered: offered === null ? undefined : readPriceList(offered, dated(offeredAt ?? datedAt)),
  };
}

/** A stored list, and the one that waits next to it. */
export type StoredPrices = {
  readonly source: 'file' | 'url';
  readonly good: PriceList;
  readonly waiting: (PriceList & { readonly drops: readonly Drop[] }) | undefined;
};

/** All stored lists, with the drops of those that wait. */
export async function storedPrices(db: Database, now: number): Promise<readonly StoredPrices[]> {
  const rows = await db.select().from(priceLists);
  return Promise.all(
    rows.map(async (row) => {
      const source = row.source === 'file' ? 'file' : 'url';
      const { good, offered } = listsOf(row, source);
      const waiting = offered && { ...offered, drops: await largeDrops(good, offered, now) };
      return { source, good, waiting };
    }),
  );
}

/**
 * Accepts a list that waits.
 * @returns false when no list of this id waits
 */
export async function acceptPrices(db: Database, id: string): Promise<boolean> {
  const { offered, offeredAt, offeredId } = priceLists;
  const accepted = await db
    .update(priceLists)
    .set({
      ...{ id: sql`${offeredId}`, list: sql`${offered}`, datedAt: sql`${offeredAt}` },
      ...{ offeredId: null, offered: null, offeredAt: null },
    })
    .where(eq(offeredId, id))
    .returning({ id: priceLists.id });
  return accepted.length > 0;
}

const SOURCE_MS = 20_000;

/** Reads the whole source, up to the first chunk beyond the size of a list. */
async function readSource(
  { dispatcher, sourceMs = SOURCE_MS }: KeepPrices,
  source: PriceSource,
): Promise<string> {
  const signal = AbortSignal.timeout(sourceMs);
  const chunks: Buffer[] = [];
  let bytes = 0;
  const from =
    source.is === 'file'
      ? createReadStream(source.path, { signal })
      : await get(source.url, dispatcher, signal);
  for await (const chunk of from as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > LIST_MAX_BYTES) throw new PriceListError(TOO_LARGE);
  }
  return decode(Buffer.concat(chunks));
}

/** A redirect could lead anywhere, so it is refused like every answer that is not 200. */
async function get(url: string, dispatcher: Dispatcher, signal: AbortSignal) {
  const headers = { accept: 'application/json, text/plain', 'accept-encoding': 'identity' };
  const { statusCode, body } = await request(url, { dispatcher, signal, headers });
  if (statusCode === 200) return body;
  // Node ends the process over an error that nothing listens to, and ending a body early is one.
  body.on('error', () => {}).destroy();
  throw new PriceListError(`answers ${statusCode}`);
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new PriceListError('is not UTF-8');
  }
}

/** The problem without an address or a path, because others than the operator may read the log. */
function problemOf(error: unknown): string {
  if (error instanceof PriceListError) return `the source ${error.message}`;
  const { error: name, ...cause } = causeOf(error);
  return `the source cannot be read (${'code' in cause ? cause.code : name})`;
}
