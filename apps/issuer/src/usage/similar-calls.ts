import { callParams, RefusedError, SIMILAR_MAX, SIMILAR_SECONDS, similarCalls } from '@presign/schema';
import { ledger, refusedCalls } from '@presign/schema/ledger-tables';
import type { Database } from '@presign/service/database';
import { and, desc, eq, gte, lte, ne, type SQL, sql } from 'drizzle-orm';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { describeCall, NO_CALL } from './calls.ts';
import { describeRefused } from './refused.ts';

/** `GET /v1/calls/{request_id}/similar`: the calls around a call, to show whether its holder repeated it. */
export const listSimilarCalls = route(
  {
    method: 'get',
    path: '/v1/calls/{request_id}/similar',
    summary: `List the calls like one within ${SIMILAR_SECONDS} seconds of it`,
    description: `Calls are similar if they are of the same URL, and of the same model, or server and tool. Those are listed that ended between ${SIMILAR_SECONDS} seconds before the call began and ${SIMILAR_SECONDS} seconds after it ended, refused ones too. \`retry_count\` says which of them an SDK sent again.`,
    scope: 'read',
    params: callParams,
    answer: similarCalls,
    errors: ['not_found'],
  },
  ({ db }) => {
    const take = inTurn();
    return async ({ apiKey: { accountId }, params, c }) => {
      const data = await take(c, async () => {
        const one = await findCall(db, accountId, params.request_id);
        return one && listAround(db, accountId, params.request_id, one);
      });
      if (!data) throw new RefusedError({ code: 'not_found', message: NO_CALL });
      return { data };
    };
  },
);

type One = {
  readonly grantId: string;
  readonly model: string | null;
  readonly server: string | null;
  readonly tool: string | null;
  readonly from: Date;
  readonly to: Date;
};

async function findCall(db: Database, accountId: string, requestId: string): Promise<One | undefined> {
  const [call] = await db
    .select()
    .from(ledger)
    .where(
      and(eq(ledger.requestId, requestId), eq(ledger.accountId, accountId), ne(ledger.outcome, 'refunded')),
    );
  if (call) return { ...call, ...around(call.startedAt, call.settledAt) };
  const [refused] = await db
    .select()
    .from(refusedCalls)
    .where(and(eq(refusedCalls.requestId, requestId), eq(refusedCalls.accountId, accountId)));
  return refused && { ...refused, ...around(refused.refusedAt, refused.refusedAt) };
}

const around = (began: Date, ended: Date) => ({
  from: new Date(began.getTime() - SIMILAR_SECONDS * 1_000),
  to: new Date(ended.getTime() + SIMILAR_SECONDS * 1_000),
});

async function listAround(db: Database, accountId: string, requestId: string, one: One) {
  const like = (table: typeof ledger | typeof refusedCalls): (SQL | undefined)[] => [
    eq(table.accountId, accountId),
    eq(table.grantId, one.grantId),
    sql`${table.requestId} is distinct from ${requestId}::uuid`,
    ...(['model', 'server', 'tool'] as const).map(
      (name) => sql`${table[name]} is not distinct from ${one[name]}::text`,
    ),
  ];
  const passed = await db
    .select()
    .from(ledger)
    .where(
      and(
        ...like(ledger),
        ne(ledger.outcome, 'refunded'),
        gte(ledger.settledAt, one.from),
        lte(ledger.settledAt, one.to),
      ),
    )
    .orderBy(desc(ledger.settledAt))
    .limit(SIMILAR_MAX);
  const refused = await db
    .select()
    .from(refusedCalls)
    .where(
      and(...like(refusedCalls), gte(refusedCalls.refusedAt, one.from), lte(refusedCalls.refusedAt, one.to)),
    )
    .orderBy(desc(refusedCalls.refusedAt))
    .limit(SIMILAR_MAX);
  return [
    ...passed.map((row) => ({ at: row.settledAt, call: describeCall(row) })),
    ...refused.map((row) => ({ at: row.refusedAt, call: describeRefused(row) })),
  ]
    .sort((a, b) => b.at.getTime() - a.at.getTime())
    .slice(0, SIMILAR_MAX)
    .map(({ call }) => call);
}
