import type { CallSummary } from '@presign/schema';
import { refusalsAnswer, refusalsQuery } from '@presign/schema';
import { refusalDays, type refusedCalls } from '@presign/schema/ledger-tables';
import { and, asc, eq, gte } from 'drizzle-orm';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';

type RefusedRow = typeof refusedCalls.$inferSelect;

/** A refused call in the format of all calls, without uses and cost. */
export const describeRefused = (row: RefusedRow): CallSummary => ({
  request_id: row.requestId,
  session_id: row.sessionId,
  grant_id: row.grantId,
  api_key: row.apiKeyId,
  virtual_key: row.virtualKeyId,
  external_user: row.externalUser,
  metadata: row.tags,
  provider: row.provider,
  model: row.model,
  server: row.server,
  tool: row.tool,
  started_at: unixSeconds(row.refusedAt),
  settled_at: unixSeconds(row.refusedAt),
  outcome: 'refused',
  failure: row.code,
  status: row.status,
  uses: 0,
  cost: 0,
  overrun: 0,
  hold: null,
  input_tokens: null,
  output_tokens: null,
  price_list: null,
  knowledge: null,
  first_byte_ms: null,
  own_ms: null,
  total_ms: null,
  retry_count: null,
  user_agent: null,
  connection: row.figures?.connection ?? null,
  turn: row.figures?.turn ?? null,
  refusal: {
    code: row.code,
    reason: row.reason,
    name: row.name,
    limit_of: row.figures?.limit_of ?? null,
    budget: row.figures?.budget ?? null,
    limit: row.figures?.limit ?? null,
    used: row.figures?.used ?? null,
    needed: row.figures?.needed ?? null,
    remaining: row.figures?.remaining ?? null,
    body_bytes: row.bodyBytes,
  },
});

const DAY_MS = 86_400_000;

/** `GET /v1/refusals`: how many calls of the account the gateways refused, by day and code. */
export const getRefusals = route(
  {
    method: 'get',
    path: '/v1/refusals',
    summary: 'Count refused calls by day and code',
    description:
      'All refused calls of URLs count, about two seconds after their end. `GET /v1/calls?outcome=refused` lists the first ten of each URL and code in an hour at each gateway. A gateway that is killed loses those of its last second. Calls with a token that no key of this service has signed have no account, and are not counted.',
    scope: 'read',
    query: refusalsQuery,
    answer: refusalsAnswer,
  },
  ({ db, now }) =>
    async ({ apiKey: { accountId }, query: { days } }) => {
      const from = dayOf(now() - (days - 1) * DAY_MS);
      const rows = await inTime(
        db
          .select()
          .from(refusalDays)
          .where(and(eq(refusalDays.accountId, accountId), gte(refusalDays.day, from)))
          .orderBy(asc(refusalDays.day), asc(refusalDays.code)),
      );
      const data = rows
        .filter(({ name }) => name === '')
        .map(({ day, code, calls }) => ({
          day,
          code,
          calls: Number(calls),
          names: namesOf(rows, day, code),
        }));
      return { from, to: dayOf(now()), data };
    },
);

/** The names for which calls were refused with a code on a day, those with the most calls first. */
const namesOf = (rows: readonly (typeof refusalDays.$inferSelect)[], day: string, code: string) =>
  rows
    .filter((row) => row.day === day && row.code === code && row.name !== '')
    .map(({ name, calls }) => ({ name, calls: Number(calls) }))
    .sort((a, b) => b.calls - a.calls);

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
