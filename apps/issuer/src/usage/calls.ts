import {
  type CallSummary,
  type CallsQuery,
  type Cursor,
  callAnswer,
  callPage,
  callParams,
  callSummary,
  callsQuery,
  RefusedError,
  UNFAILED,
} from '@presign/schema';
import { ledger, refusedCalls } from '@presign/schema/ledger-tables';
import type { Database } from '@presign/service/database';
import { and, asc, eq, notInArray, type SQL, sql } from 'drizzle-orm';
import { exportList, formatOf } from '../answers/export.ts';
import { after, filtersOf, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { describeLedgerRow, type LedgerRow } from './describe-row.ts';
import { outcomeInSql } from './outcome-in-sql.ts';
import { describeRefused } from './refused.ts';
import { hasTags, refuseUndeclared } from './tags-asked.ts';

/** Calls are ordered by the time at which they settled, refused ones by the time of their refusal. */
const PLACE = { createdAt: ledger.settledAt, id: ledger.holdId };
const REFUSED_PLACE = { createdAt: refusedCalls.refusedAt, id: refusedCalls.requestId };

/** `GET /v1/calls`: the calls of the account that have settled or were refused, newest first. */
export const listCalls = route(
  {
    method: 'get',
    path: '/v1/calls',
    summary: 'List calls, newest first, with their tokens, hold, cost and end, or how they were refused',
    description:
      'A call is listed when it has settled, about a second after its end. `outcome=refused` lists refused calls, about two seconds after their end: of each URL and code the first ten of an hour at each gateway, while `GET /v1/refusals` counts all. A call is kept for as long as the ledger keeps it, and a refused one for `REFUSALS_KEPT_DAYS`. Requests that the issuer refuses are in its log alone.',
    scope: 'read',
    query: callsQuery,
    answer: callPage,
    texts: ['text/csv', 'application/x-ndjson'],
  },
  ({ db, log, usageMetadata }) => {
    const take = inTurn();
    return async ({ apiKey: { accountId }, query, c }) => {
      refuseUndeclared(usageMetadata, query);
      const read = (cursor: Cursor | undefined, limit: number) =>
        take(c, () => readCalls(db, accountId, { ...query, cursor, limit }));
      const entryOf = ({ call }: Listed) => call;
      const format = formatOf(c, query.format);
      if (format !== 'json')
        return exportList(c, log, format, { name: 'calls', columns: COLUMNS, cells: cellsOf, entryOf, read });
      return pageOfRows(await read(query.cursor, query.limit), query.limit, entryOf);
    };
  },
);

/** CSV has a column for each field of a call. */
const COLUMNS = Object.keys(callSummary.shape) as (keyof CallSummary)[];
const cellsOf = (call: CallSummary) => COLUMNS.map((name) => call[name]);

/** The calls of a page, and one more if there is a next page. */
async function readCalls(db: Database, accountId: string, query: CallsQuery): Promise<Listed[]> {
  const { outcome, limit } = query;
  const rows = [
    ...(outcome === 'refused' ? [] : await settledCalls(db, accountId, query)),
    ...(outcome === 'refused' || outcome === 'all' ? await refused(db, accountId, query) : []),
  ];
  return rows.sort((a, b) => (isNewer(a, b) ? -1 : 1)).slice(0, limit + 1);
}

type Listed = { readonly id: string; readonly micros: string; readonly call: CallSummary };

/** In the order of the page. Times of equal length compare like text. */
const isNewer = (a: Listed, b: Listed) =>
  a.micros === b.micros ? a.id > b.id : BigInt(a.micros) > BigInt(b.micros);

async function settledCalls(db: Database, accountId: string, query: CallsQuery): Promise<Listed[]> {
  const { outcome, ...others } = query;
  const rows = await db
    .select({ id: ledger.holdId, micros: micros(ledger.settledAt), call: ledger })
    .from(ledger)
    .where(
      and(
        eq(ledger.accountId, accountId),
        ended(outcome),
        after(query.cursor, PLACE),
        ...filtersOf(others, ledger.settledAt, FILTERS),
        hasTags(ledger.tags, query.metadata),
      ),
    )
    .orderBy(...newestFirst(PLACE))
    .limit(query.limit + 1);
  return rows.map(({ call, ...place }) => ({ ...place, call: describeCall(call) }));
}

/** The condition for calls with this outcome. */
function ended(outcome: CallsQuery['outcome']): SQL | undefined {
  if (outcome === undefined || outcome === 'all' || outcome === 'refused') return undefined;
  if (outcome !== 'failed') return sql`${outcomeInSql} = ${outcome}`;
  return notInArray(outcomeInSql, [...UNFAILED]);
}

async function refused(db: Database, accountId: string, query: CallsQuery): Promise<Listed[]> {
  const rows = await db
    .select({ id: refusedCalls.requestId, micros: micros(refusedCalls.refusedAt), call: refusedCalls })
    .from(refusedCalls)
    .where(
      and(
        eq(refusedCalls.accountId, accountId),
        after(query.cursor, REFUSED_PLACE),
        ...filtersOf(query, refusedCalls.refusedAt, REFUSED_FILTERS),
        hasTags(refusedCalls.tags, query.metadata),
      ),
    )
    .orderBy(...newestFirst(REFUSED_PLACE))
    .limit(query.limit + 1);
  return rows.map(({ call, ...place }) => ({ ...place, call: describeRefused(call) }));
}

/** `GET /v1/calls/{request_id}`: one call with its refund. */
export const getCall = route(
  {
    method: 'get',
    path: '/v1/calls/{request_id}',
    summary: 'Get a call by the x-presign-request-id of its answer',
    scope: 'read',
    params: callParams,
    answer: callAnswer,
    errors: ['not_found'],
  },
  ({ db }) => {
    const take = inTurn();
    return async ({ apiKey, params, c }) => {
      const own = and(eq(ledger.requestId, params.request_id), eq(ledger.accountId, apiKey.accountId));
      const isRefused = and(
        eq(refusedCalls.requestId, params.request_id),
        eq(refusedCalls.accountId, apiKey.accountId),
      );
      const { rows, refused } = await take(c, async () => {
        const rows = await db.select().from(ledger).where(own).orderBy(asc(ledger.settledAt));
        const [refused] = rows.length > 0 ? [] : await db.select().from(refusedCalls).where(isRefused);
        return { rows, refused };
      });
      if (refused) return { ...describeRefused(refused), price_lines: null, refunds: [] };
      const call = rows.find(({ outcome }) => outcome !== 'refunded');
      if (!call) throw new RefusedError({ code: 'not_found', message: NO_CALL });
      const refunds = rows
        .filter(({ outcome }) => outcome === 'refunded')
        .map(({ settledAt, uses, costMicrousd: cost }) => ({
          settled_at: unixSeconds(settledAt),
          uses,
          cost,
        }));
      return { ...describeCall(call), price_lines: linesOf(call), refunds };
    };
  },
);

export const NO_CALL =
  'There is no call with this request id. A call appears about a second after it ended, a refused one after two. The first refused calls of each URL and code in an hour are kept.';

const FILTERS = [
  ['external_user', ledger.externalUser],
  ['session_id', ledger.sessionId],
  ['grant_id', ledger.grantId],
  ['api_key', ledger.apiKeyId],
  ['virtual_key', ledger.virtualKeyId],
  ['provider', ledger.provider],
  ['model', ledger.model],
  ['server', ledger.server],
  ['tool', ledger.tool],
  ['failure', ledger.failure],
] as const;

const REFUSED_FILTERS = [
  ['external_user', refusedCalls.externalUser],
  ['session_id', refusedCalls.sessionId],
  ['grant_id', refusedCalls.grantId],
  ['api_key', refusedCalls.apiKeyId],
  ['virtual_key', refusedCalls.virtualKeyId],
  ['provider', refusedCalls.provider],
  ['model', refusedCalls.model],
  ['server', refusedCalls.server],
  ['tool', refusedCalls.tool],
  ['failure', refusedCalls.code],
] as const;

export const describeCall = (row: LedgerRow): CallSummary => ({
  ...describeLedgerRow(row),
  virtual_key: row.virtualKeyId,
  metadata: row.tags,
  failure: row.failure,
  hold: row.heldMicrousd,
  price_list: row.priceList === null ? null : priceListOf(row.priceList),
  knowledge: row.knowledge,
  first_byte_ms: row.firstByteMs,
  own_ms: row.ownUs === null ? null : Math.round(row.ownUs / 100) / 10,
  total_ms: row.totalMs,
  retry_count: row.retryCount,
  user_agent: row.userAgent,
  connection: row.connectionId,
  turn: row.turn,
  refusal: null,
});

const linesOf = ({ priceLines }: LedgerRow) =>
  priceLines?.map(([unit, count, rate]) => ({ unit, count, rate })) ?? null;

function priceListOf(text: string) {
  const [source = '', id = ''] = text.split(':', 2);
  return { source, id };
}
