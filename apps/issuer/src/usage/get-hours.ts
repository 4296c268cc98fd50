import {
  HOURS_DAYS,
  HOURS_DAYS_MAX,
  HOURS_ROWS_MAX,
  type HourDimension,
  type HoursAnswer,
  type HoursQuery,
  hoursAnswer,
  hoursQuery,
  OF_PROVIDER_OR_GATEWAY,
  type Outcome,
  RefusedError,
  UNFAILED,
} from '@presign/schema';
import { callHours } from '@presign/schema/ledger-tables';
import type { TextRow } from '@presign/service/database';
import { and, eq, gte, lt, type SQL, sql } from 'drizzle-orm';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { middleOf } from './call-hours.ts';

/** `GET /v1/usage/hours`: how the calls of each hour ended, and how long they took. */
export const getUsageHours = route(
  {
    method: 'get',
    path: '/v1/usage/hours',
    summary: 'Error rate and percentiles of the times of calls, by the hour',
    description:
      'Reads sums that are kept as long as the ledger, never its rows. A call counts in the hour in which it settled, and an MCP call about a second after its end. Calls that the gateway refused are in `GET /v1/refusals`.',
    scope: 'read',
    query: hoursQuery,
    answer: hoursAnswer,
  },
  ({ db, now }) => {
    const take = inTurn();
    return async ({ apiKey: { accountId }, query, c }) => {
      const { from, to } = rangeOf(query, now());
      const by = query.group_by ?? [];
      const which = and(
        eq(callHours.accountId, accountId),
        gte(callHours.hour, from),
        lt(callHours.hour, to),
        ...(['provider', 'model', 'server'] as const).map((name) =>
          query[name] === undefined ? undefined : eq(callHours[name], query[name]),
        ),
      );
      const rows = await take(c, () => db.execute<TextRow>(selectHours(by, which)));
      if (rows.length > HOURS_ROWS_MAX)
        throw refuse('from', `expected a range of at most ${HOURS_ROWS_MAX} rows; ask for a shorter one`);
      return { from: unixSeconds(from), to: unixSeconds(to), data: rows.map((row) => describe(row, by)) };
    };
  },
);

const DAY_MS = 86_400_000;

/** @throws RefusedError `invalid_request` */
function rangeOf({ from, to }: HoursQuery, nowMs: number) {
  const end = to ?? new Date(nowMs);
  const begin = from ?? new Date(Math.max(0, end.getTime() - HOURS_DAYS * DAY_MS));
  if (begin >= end) throw refuse('from', 'expected a time before to, or before now without it');
  if (end.getTime() - begin.getTime() > HOURS_DAYS_MAX * DAY_MS)
    throw refuse('from', `expected at most ${HOURS_DAYS_MAX} days before to`);
  return { from: begin, to: end };
}

const refuse = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

const list = (parts: readonly SQL[]) => sql.join([...parts], sql`, `);

/** The interval that contains a given percentile of a group's calls. */
const reached = (name: 'total' | 'first_byte', part: number) => {
  const [below, all] = [sql.identifier(`${name}_below`), sql.identifier(`${name}_all`)];
  return sql`(min(${sql.identifier(name)}) filter (where ${below} >= ${part} * ${all}))::text`;
};

/** Sums of sums. Percentiles are those of the calls that have the time. */
function selectHours(by: readonly HourDimension[], which: SQL | undefined): SQL {
  const group = list([sql`hour`, ...by.map((name) => sql.identifier(name) as unknown as SQL)]);
  const overall = (name: 'total' | 'first_byte') => {
    const column = sql.identifier(name);
    const some = sql`sum(calls) filter (where ${column} is not null)`;
    return sql`sum(${some}) over (partition by ${group} order by ${column}) as ${sql.identifier(`${name}_below`)},
      sum(${some}) over (partition by ${group}) as ${sql.identifier(`${name}_all`)}`;
  };
  const sums = (
    name: 'total' | 'first_byte',
  ) => sql`select ${group}, ${sql.identifier(name)}, ${overall(name)}
    from ${callHours} where ${which} group by ${group}, ${sql.identifier(name)}`;
  const percentiles = (name: 'total' | 'first_byte') => sql`select ${group},
    ${reached(name, 0.5)} as ${sql.identifier(`${name}_p50`)}, ${reached(name, 0.95)} as ${sql.identifier(`${name}_p95`)}
    from (${sums(name)}) as sums group by ${group}`;
  const outcomes = sql`select ${group}, json_object_agg(outcome, calls)::text as outcomes from (
    select ${group}, outcome, sum(calls) as calls from ${callHours} where ${which} group by ${group}, outcome) as ended
    group by ${group}`;
  const same = (other: string) =>
    sql.join(
      ['hour', ...by].map((name) => {
        const column = sql.identifier(name);
        return sql`ends.${column} is not distinct from ${sql.identifier(other)}.${column}`;
      }),
      sql` and `,
    );
  const columns = list([
    sql`extract(epoch from ends.hour)::bigint::text as hour`,
    ...by.map((name) => sql`ends.${sql.identifier(name)}`),
    sql`ends.outcomes, total_p50, total_p95, first_byte_p50, first_byte_p95`,
  ]);
  const order = list(['hour', ...by].map((name) => sql`ends.${sql.identifier(name)}`));
  return sql`select ${columns} from (${outcomes}) as ends
    join (${percentiles('total')}) as totals on ${same('totals')}
    join (${percentiles('first_byte')}) as firsts on ${same('firsts')}
    order by ${order} limit ${HOURS_ROWS_MAX + 1}`;
}

type Row = HoursAnswer['data'][number];

function describe(row: TextRow, by: readonly HourDimension[]): Row {
  const outcomes = JSON.parse(row['outcomes'] ?? '{}') as Partial<Record<Outcome, number>>;
  const count = (isWanted: (outcome: Outcome) => boolean) =>
    Object.entries(outcomes)
      .filter(([outcome]) => isWanted(outcome as Outcome))
      .reduce((sum, [, calls]) => sum + calls, 0);
  const calls = count(() => true);
  const ms = (name: string) => {
    const interval = row[name] ?? null;
    return interval === null ? null : middleOf(Number(interval));
  };
  return {
    hour: Number(row['hour']),
    ...Object.fromEntries(by.map((name) => [name, row[name] ?? null])),
    calls,
    failed_calls: count((outcome) => !UNFAILED.includes(outcome)),
    error_rate:
      Math.round((10_000 * count((outcome) => OF_PROVIDER_OR_GATEWAY.includes(outcome))) / calls) / 10_000,
    outcomes,
    total_ms: { p50: ms('total_p50'), p95: ms('total_p95') },
    first_byte_ms: { p50: ms('first_byte_p50'), p95: ms('first_byte_p95') },
  };
}
