import { readRefusals } from '@presign/limits';
import {
  type CallSummary,
  callAnswer,
  callPage,
  callParams,
  callsQuery,
  homePartition,
  RefusedError,
  refusalsAnswer,
  refusalsQuery,
} from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { and, asc, eq } from 'drizzle-orm';
import { after, filtersOf, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { inTime, inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { describeLedgerRow, type LedgerRow } from './describe-row.ts';

/** Calls are ordered by the time at which they settled. */
const PLACE = { createdAt: ledger.settledAt, id: ledger.holdId };

/** `GET /v1/calls`: the calls of the account that have settled, newest first. */
export const listCalls = route(
  {
    method: 'get',
    path: '/v1/calls',
    summary: 'List calls, newest first, with their tokens, hold, cost and end',
    description:
      'A call is listed when it has settled, about a second after its end. Refused calls are not listed: the gateway logs them, and `GET /v1/refusals` counts them. A call is kept for as long as the ledger keeps it.',
    scope: 'read',
    query: callsQuery,
    answer: callPage,
  },
  ({ db }) => {
    const take = inTurn();
    return async ({ apiKey, query, c }) => {
      const rows = await take(c, async () =>
        db
          .select({ id: ledger.holdId, micros: micros(ledger.settledAt), call: ledger })
          .from(ledger)
          .where(
            and(
              eq(ledger.accountId, apiKey.accountId),
              after(query.cursor, PLACE),
              ...filtersOf(query, ledger.settledAt, FILTERS),
            ),
          )
          .orderBy(...newestFirst(PLACE))
          .limit(query.limit + 1),
      );
      return pageOfRows(rows, query.limit, ({ call }) => describeCall(call));
    };
  },
);

/** `GET /v1/calls/{request_id}`: one call, and what was given back of it. */
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
      const rows = await take(c, async () =>
        db.select().from(ledger).where(own).orderBy(asc(ledger.settledAt)),
      );
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

const NO_CALL =
  'The ledger has no call with this request id. A call appears about a second after it ended, and a refused one never does.';

const FILTERS = [
  ['external_user', ledger.externalUser],
  ['session_id', ledger.sessionId],
  ['grant_id', ledger.grantId],
  ['api_key', ledger.apiKeyId],
  ['virtual_key', ledger.virtualKeyId],
  ['provider', ledger.provider],
  ['model', ledger.model],
  ['outcome', ledger.outcome],
] as const;

const describeCall = (row: LedgerRow): CallSummary => ({
  ...describeLedgerRow(row),
  virtual_key: row.virtualKeyId,
  failure: row.failure,
  hold: row.heldMicrousd,
  price_list: row.priceList === null ? null : priceListOf(row.priceList),
  knowledge: row.knowledge,
});

const linesOf = ({ priceLines }: LedgerRow) =>
  priceLines?.map(([unit, count, rate]) => ({ unit, count, rate })) ?? null;

function priceListOf(text: string) {
  const [source = '', id = ''] = text.split(':', 2);
  return { source, id };
}

const DAY_MS = 86_400_000;

/** `GET /v1/refusals`: how many calls of the account the gateways refused, by day and code. */
export const getRefusals = route(
  {
    method: 'get',
    path: '/v1/refusals',
    summary: 'Count refused calls by day and code',
    description:
      'Refused calls cost nothing and are not in the ledger. The counts are approximate: gateways add them up, and lose those of the last second when they are killed. Calls with a token that is not valid have no account, and are not counted.',
    scope: 'read',
    query: refusalsQuery,
    answer: refusalsAnswer,
  },
  ({ redis, now }) =>
    async ({ apiKey: { accountId }, query: { days } }) => {
      const names = Array.from({ length: days }, (_, i) => dayOf(now() - (days - 1 - i) * DAY_MS));
      const reading = readRefusals(redis, homePartition(accountId), accountId, names);
      const found = await inTime(reading).catch(() => null);
      const data = found?.flatMap(({ day, calls }) => refusalsOf(day, calls));
      return { from: names[0] ?? '', to: names.at(-1) ?? '', data: data ?? null };
    },
);

/** The refusals of a day by code, each with the names that calls were refused for, those of most calls first. */
function refusalsOf(day: string, calls: ReadonlyMap<string, number>) {
  const entries = Array.from(calls, ([entry, count]) => {
    const [code = '', name] = entry.split(' ', 2);
    return { code, name, calls: count };
  });
  return entries
    .filter(({ name }) => name === undefined)
    .sort((a, b) => (a.code < b.code ? -1 : 1))
    .map((each) => {
      const named = entries.filter(({ code, name }) => code === each.code && name !== undefined);
      const names = named
        .sort((a, b) => b.calls - a.calls)
        .map(({ name = '', calls: count }) => ({ name, calls: count }));
      return { day, code: each.code, calls: each.calls, names };
    });
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
