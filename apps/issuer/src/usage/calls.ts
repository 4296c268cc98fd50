import {
  type CallSummary,
  callAnswer,
  callPage,
  callParams,
  callsQuery,
  RefusedError,
} from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { and, asc, eq } from 'drizzle-orm';
import { inTurn } from '../in-time.ts';
import { after, filtersOf, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { describeLedgerRow, type LedgerRow, toSeconds } from './describe-row.ts';

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
        .map(({ settledAt, uses, costMicrousd: cost }) => ({ settled_at: toSeconds(settledAt), uses, cost }));
      return { ...describeCall(call), refunds };
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
});

function priceListOf(text: string) {
  const [source = '', id = ''] = text.split(':', 2);
  return { source, id };
}
