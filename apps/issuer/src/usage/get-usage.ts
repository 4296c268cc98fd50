import {
  RefusedError,
  startOfDay,
  USAGE_DAYS,
  USAGE_SUMS,
  type UsageQuery,
  usageQuery,
  usageReport,
  writeUsageCursor,
} from '@presign/schema';
import { causeOf } from '@presign/service';
import { type Database, sqlState, type TextRow, type Transaction } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { Logger } from 'pino';
import { csvLine, textCell } from '../answers/csv.ts';
import { pump } from '../answers/pump.ts';
import { exactSeconds } from '../answers/unix-seconds.ts';
import type { IssuerEnv } from '../identity/caller.ts';
import { DATABASE_UNAVAILABLE } from '../middleware/errors.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { type DividedRange, dayText, isDivision, type UsageMarks } from './divide-range.ts';
import { divideAsked, findMarks, isLocal, selectUsage, type UsageAsked } from './sum-calls.ts';
import { keyOf, refuseUndeclared } from './tags-asked.ts';

/**
 * Reports of one account that are read at once. Measured on two busy cores with six requested reports: with two reports at once, the 99th
 * percentile of `POST /v1/presign` was 4.8 times that without reports, and with one report 2.3 times (bench/scale/reports.ts).
 */
const AT_ONCE = 1;

/** A little longer than the statement timeout of Postgres, so that its own error comes first. */
const LONGEST_MS = 11_000;

/** `GET /v1/usage`: sums the account's settled calls, for billing. */
export const getUsage = route(
  {
    method: 'get',
    path: '/v1/usage',
    summary: 'Sum settled calls over a range, as JSON or CSV',
    scope: 'read',
    query: usageQuery,
    answer: usageReport,
    texts: ['text/csv'],
  },
  (deps) => {
    const take = inTurn(LONGEST_MS, AT_ONCE);
    return async ({ apiKey, query, c }) => {
      refuseUndeclared(deps.usageMetadata, query);
      const asked = { ...query, ...rangeOf(query, deps.now()), group_by: query.group_by ?? [] };
      c.header('vary', 'Accept');
      const format = wantsCsv(c, query) ? csvFormat(asked) : jsonFormat(asked);
      return writeReport(c, deps.log, format, (write) =>
        take(c, ({ isWanted }) =>
          sumUsage(deps.db, apiKey.accountId, asked, (report) => write(report, isWanted)),
        ),
      ).catch(refuseUnsummed);
    };
  },
);

const DAY_MS = 86_400_000;
const LOCAL_DAYS_MAX = 3_660;

/**
 * The range of a report, and the last group of the previous page. A later page has the range of the first page, so that it continues the
 * same report even if the end was omitted.
 * @throws RefusedError `invalid_request`
 */
function rangeOf({ timezone, group_by: by = [], cursor, ...query }: UsageQuery, nowMs: number) {
  const momentOf = (time: Date | string | undefined) =>
    typeof time === 'string' ? startOfDay(time, timezone) : time;
  const [from, to] = [momentOf(query.from), momentOf(query.to)];
  if (cursor) {
    const [fromMs, toMs, after] = cursor;
    const isSame =
      after.length === by.length &&
      (from === undefined || from.getTime() === fromMs) &&
      (to === undefined || to.getTime() === toMs);
    if (!isSame) throw refuse('cursor', 'expected the group_by, from and to of the report that it continues');
    return { from: new Date(fromMs), to: new Date(toMs), after };
  }
  const end = to ?? new Date(nowMs);
  const begin = from ?? new Date(Math.max(0, end.getTime() - USAGE_DAYS * DAY_MS));
  if (begin >= end) throw refuse('from', 'expected a time before to, or before now without it');
  // Each of its days is read separately.
  if (isLocal({ timezone, group_by: by }) && end.getTime() - begin.getTime() > LOCAL_DAYS_MAX * DAY_MS)
    throw refuse(
      'from',
      `expected at most ${LOCAL_DAYS_MAX} days before to, for days or months of a timezone`,
    );
  return { from: begin, to: end };
}

const refuse = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

/**
 * SQLSTATE 57014, query_canceled: Postgres works, but the sum takes longer than one statement may. 22023, invalid_parameter_value: it does
 * not have the time zone.
 */
function refuseUnsummed(cause: unknown): never {
  if (sqlState(cause) === '22023') throw refuse('timezone', 'the database does not know this time zone');
  if (sqlState(cause) !== '57014') throw cause;
  const message = 'This range could not be summed in time. Ask for a shorter one.';
  throw new RefusedError({ ...DATABASE_UNAVAILABLE, message }, { cause });
}

/**
 * Rows of the ledger with the same values of the dimensions, which are null where these rows have none, and their sums. The texts of
 * Postgres are written unchanged, without parsing numbers and without an object for each group.
 */
type UsageGroup = TextRow;

/** A report whose groups are all in Postgres, and a few in this process. */
type Report = {
  readonly total: UsageGroup;
  /** Whether a sum is above 2^53 − 1. */
  readonly isHuge: boolean;
  /** The cursor of the groups after those of this page. */
  readonly nextCursor: string | null;
  /** How many groups the whole range has. */
  readonly groups: string;
  readonly first: readonly UsageGroup[];
  /** Reads the groups after the first ones, some at a time. Empty when there are none. */
  readonly rest: () => AsyncGenerator<readonly UsageGroup[]>;
};

/**
 * Groups that are read from Postgres and written at a time, while other requests wait. Under six reports, the 99th percentile of `POST
 * /v1/presign` was 74 to 99 ms with 500 groups, and 40 to 61 ms with 100, and reports were 10 % slower (bench/scale/reports.ts, two busy
 * cores).
 */
const PIECE = 100;

/**
 * Sums an account's ledger in one statement, so that all groups of a page belong to one snapshot. Its cursor is open
 * until `write` ends.
 */
async function sumUsage(
  db: Database,
  accountId: string,
  asked: UsageAsked,
  write: (report: Report) => Promise<void>,
): Promise<void> {
  const summed = async (tx: Transaction) => {
    const marks = await findMarks(tx, accountId);
    const divided = divideAsked(asked, marks);
    refuseParts(asked, marks, divided);
    // Compiling a report takes Postgres longer than summing it from days.
    await tx.execute(sql`set local jit = off`);
    await tx.execute(sql`declare usage_report scroll cursor for ${selectUsage(accountId, asked, divided)}`);
    // The first row is the total. Without dimensions it is also the only group.
    const [total, ...groups] = await fetchRows(tx, `${Math.min(PIECE, asked.limit) + 1}`);
    if (!total) throw new Error('Postgres returned no total');
    const left = Number(total.groups_left);
    const count = Math.min(left, asked.limit, asked.top ?? asked.limit);
    const hasNext = left > count && asked.top === undefined;
    const nextCursor = hasNext ? await readCursor(tx, asked, groups.length) : null;
    const rest = async function* () {
      for (let left = count - groups.length; left > 0; left -= PIECE)
        yield await fetchRows(tx, `${Math.min(PIECE, left)}`);
    };
    const isGrouped = asked.group_by.length > 0;
    const [first, all] = isGrouped ? [groups, total.groups ?? '0'] : [[total], '1'];
    await write({ total, isHuge: total.huge === 'true', nextCursor, groups: all, first, rest });
  };
  // One snapshot, because sums may move on and calls be deleted meanwhile.
  await db.transaction(summed, { isolationLevel: 'repeatable read', accessMode: 'read only' });
}

const fetchRows = (tx: Transaction, which: string) =>
  tx.execute<TextRow>(sql.raw(`fetch ${which} from usage_report`));

/** The cursor of the page after this one. Answers have it in a header, so it is read before the groups of this page. */
async function readCursor(tx: Transaction, asked: UsageAsked, read: number): Promise<string> {
  const { from, to, limit, group_by: by } = asked;
  // Row 1 is the total.
  const [last] = await fetchRows(tx, `absolute ${limit + 1}`);
  await tx.execute(sql.raw(`move absolute ${read + 1} in usage_report`));
  return writeUsageCursor([from.getTime(), to.getTime(), by.map((name) => last?.[name] ?? null)]);
}

/** Refuses a query for calls that may be gone from the ledger, unless sums by day can answer it. */
function refuseParts(
  { from, to, ...asked }: UsageAsked,
  { keptMs, sumsMs, dividedMs }: UsageMarks,
  { calls }: DividedRange,
): void {
  if (from.getTime() < sumsMs)
    throw refuse(
      'from',
      `calls before ${dayText(sumsMs)} (UTC) and their sums are deleted; ask for a later from`,
    );
  if (calls.every(([begin]) => begin >= keptMs)) return;
  const before = `calls before ${dayText(keptMs)} are kept as sums by day (UTC)`;
  for (const [param, time] of Object.entries({ from, to })) {
    const ms = time.getTime();
    const isWhole = ms >= dividedMs ? isDivision(ms) : ms % DAY_MS === 0;
    const wanted = ms >= dividedMs ? 'a full hour' : 'midnight';
    if (ms < keptMs && !isWhole) throw refuse(param, `${before}; ask for ${wanted}`);
  }
  const ofCalls = {
    session_id: asked.session_id !== undefined,
    request_id: asked.request_id !== undefined,
    group_by: asked.group_by.includes('session_id'),
  };
  for (const [param, isAsked] of Object.entries(ofCalls))
    if (isAsked) throw refuse(param, `${before}, without session_id and request_id; ask for a later from`);
  throw refuse('timezone', `${before}; ask for a later from, or for UTC`);
}

/** The sums of a group as whole numbers in decimal digits. */
const sumsOf = (row: UsageGroup): string[] => USAGE_SUMS.map((name) => row[name] ?? '0');

const wantsCsv = (c: Context<IssuerEnv>, { format }: UsageQuery) =>
  format === undefined
    ? accepts(c, { header: 'Accept', supports: ['application/json', 'text/csv'], default: '' }) === 'text/csv'
    : format === 'csv';

/** The writer of a report. */
type Format = {
  readonly headers: Readonly<Record<string, string>>;
  /** Refuses a report that cannot be written. */
  readonly check?: (report: Report) => void;
  readonly head: (report: Report) => string;
  readonly group: (group: UsageGroup) => string;
  readonly between: string;
  readonly tail: (total: UsageGroup) => string;
};

/** How long a caller may take to read an answer, which keeps a connection to Postgres meanwhile. */
const READING_MS = 60_000;
/** The same while the report of another account waits for the connection. */
const READING_WANTED_MS = 3_000;

type Write = (report: Report, isWanted: () => boolean) => Promise<void>;

/**
 * Answers with a report, whole if it is short. A longer one is read from Postgres only as fast as the caller reads it, so that its memory
 * does not grow with its length.
 */
function writeReport(
  c: Context<IssuerEnv>,
  log: Logger,
  format: Format,
  read: (write: Write) => Promise<void>,
): Promise<Response> {
  const write = (groups: readonly UsageGroup[]) => groups.map(format.group).join(format.between);
  return new Promise((answer, reject) => {
    let isRefused = false;
    const writeAll: Write = async (report, isWanted) => {
      // The caller has waited too long for its turn or for Postgres, and already has an error.
      if (isRefused) return;
      const { first, rest, total, nextCursor } = report;
      if (nextCursor !== null) c.header('link', nextPage(c, nextCursor));
      format.check?.(report);
      const begun = format.head(report) + write(first);
      const more = rest();
      const next = await more.next();
      if (next.done) return answer(c.body(begun + format.tail(total), 200, format.headers));
      if (c.req.method === 'HEAD') return answer(c.body(null, 200, format.headers));
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      answer(c.body(readable, 200, format.headers));
      const texts = async function* () {
        yield begun + format.between + write(next.value);
        for await (const groups of more) yield format.between + write(groups);
        yield format.tail(total);
      };
      const broken = (error: unknown) =>
        log.info({ request_id: c.get('requestId'), ...causeOf(error) }, 'usage report broken off');
      const patience = { longestMs: READING_MS, wantedMs: READING_WANTED_MS, isWanted };
      await pump({ writable, outgoing: c.env.outgoing }, texts(), patience).catch(broken);
    };
    read(writeAll).catch((error: unknown) => {
      isRefused = true;
      reject(error);
    });
  });
}

/** The same query with the cursor of the next page (RFC 8288 §3). The address of the answer completes it. */
function nextPage(c: Context<IssuerEnv>, cursor: string): string {
  const query = new URL(c.req.url).searchParams;
  query.set('cursor', cursor);
  return `<?${query}>; rel="next"`;
}

/** CSV (RFC 4180): a header, one line for each group, CRLF at the end of every line. */
function csvFormat({ from, to, group_by: by }: UsageAsked): Format {
  const [first, last] = [from, to].map((time) => time.toISOString().slice(0, 19).replaceAll(':', ''));
  return {
    headers: {
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="usage-${first}Z-${last}Z.csv"`,
    },
    head: () => csvLine([...by, ...USAGE_SUMS]),
    group: (group) => csvLine([...by.map((name) => textCell(group[name] ?? null)), ...sumsOf(group)]),
    between: '',
    tail: () => '',
  };
}

/** The members of a `UsageReport`, in its order. */
function jsonFormat({ from, to, group_by }: UsageAsked): Format {
  const range = JSON.stringify({ from: exactSeconds(from), to: exactSeconds(to), group_by });
  const sums = (group: UsageGroup) => sumsOf(group).map((sum, i) => `"${USAGE_SUMS[i]}":${sum}`);
  const shown = (names: readonly string[], group: UsageGroup) =>
    names.map((name) => `"${keyOf(name) ?? name}":${JSON.stringify(group[name] ?? null)}`);
  const ofMetadata = group_by.filter((name) => keyOf(name) !== undefined);
  const fields = group_by.filter((name) => keyOf(name) === undefined);
  const metadata = (group: UsageGroup) =>
    ofMetadata.length > 0 ? [`"metadata":{${shown(ofMetadata, group).join(',')}}`] : [];
  return {
    headers: { 'content-type': 'application/json' },
    // JSON parsers would read another number (RFC 8259 §6).
    check: ({ isHuge }) => {
      if (isHuge)
        throw refuse('format', 'these sums are above 2^53 − 1, which JSON cannot hold exactly; ask for csv');
    },
    head: ({ nextCursor, groups }) =>
      `${range.slice(0, -1)},"next_cursor":${JSON.stringify(nextCursor)},"groups":${groups},"data":[`,
    group: (group) => `{${[...shown(fields, group), ...metadata(group), ...sums(group)].join(',')}}`,
    between: ',',
    tail: (total) => `],"total":{${sums(total).join(',')}}}`,
  };
}
