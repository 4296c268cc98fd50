import { UNFAILED, USAGE_SUMS, type UsageDimension, type UsageQuery } from '@presign/schema';
import { ledger, NEVER_HEARD, usageDays, usageMarks } from '@presign/schema/ledger-tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, gte, lt, notInArray, type SQL, sql } from 'drizzle-orm';
import { type DividedRange, dayText, divideRange, type PartOfDay, type UsageMarks } from './divide-range.ts';
import { outcomeInSql } from './outcome-in-sql.ts';
import { runningUntil, SUM_COLUMNS } from './pieces-in-sql.ts';
import { hasTags, keyOf, tagIn } from './tags-asked.ts';

/** The calls to sum, and the dimensions to group them by. */
export type UsageAsked = Omit<UsageQuery, 'format' | 'group_by' | 'from' | 'to' | 'cursor'> & {
  readonly from: Date;
  readonly to: Date;
  readonly group_by: readonly UsageDimension[];
  /** The values of the last group of the previous page. */
  readonly after?: readonly (string | null)[] | undefined;
};

const UNFAILED_IN_SQL = sql.raw(UNFAILED.map((name) => `'${name}'`).join(', '));

type Sums = Readonly<Record<(typeof USAGE_SUMS)[number], SQL>>;

/** A refund is a separate row, and not a call. */
const isCall = sql`${ledger.outcome} <> 'refunded'`;
/** The refund of an MCP call that the gateway refused because Redis did not answer. Its charge is not a call either. */
const isRefusal = sql`${ledger.outcome} = 'refunded' and ${ledger.failure} = ${NEVER_HEARD}`;
export const SUMS_OF_CALLS: Sums = {
  calls: sql`count(*) filter (where ${isCall}) - count(*) filter (where ${isRefusal})`,
  uses: sql`sum(${ledger.uses})`,
  cost: sql`sum(${ledger.costMicrousd})`,
  failed_calls: sql`count(*) filter (where ${outcomeInSql} not in (${UNFAILED_IN_SQL}))`,
  calls_of_unknown_cost: sql`count(*) filter (where ${isCall} and ${ledger.costMicrousd} is null)`,
  input_tokens: sql`sum(${ledger.inputTokens})`,
  output_tokens: sql`sum(${ledger.outputTokens})`,
};
export const SUMS_OF_DAYS: Sums = {
  calls: sql`sum(${usageDays.calls})`,
  uses: sql`sum(${usageDays.uses})`,
  cost: sql`sum(${usageDays.costMicrousd})`,
  failed_calls: sql`coalesce(sum(${usageDays.calls}) filter (where ${usageDays.outcome} not in (${UNFAILED_IN_SQL})), 0)`,
  calls_of_unknown_cost: sql`sum(${usageDays.callsOfUnknownCost})`,
  input_tokens: sql`sum(${usageDays.inputTokens})`,
  output_tokens: sql`sum(${usageDays.outputTokens})`,
};

/** The sum of some pieces of a day: the running sum up to the last piece, minus the running sum before the first. */
const ofPart = (name: keyof typeof SUM_COLUMNS) => {
  const place = sql.raw(String(Object.keys(SUM_COLUMNS).indexOf(name) + 1));
  return sql`until.last[1][${place}] - until.before[1][${place}]`;
};
const SUMS_OF_PARTS: Sums = {
  calls: sql`sum(${ofPart('calls')})`,
  uses: sql`sum(${ofPart('uses')})`,
  cost: sql`sum(${ofPart('cost')})`,
  failed_calls: sql`coalesce(sum(${ofPart('calls')}) filter (where ${usageDays.outcome} not in (${UNFAILED_IN_SQL})), 0)`,
  calls_of_unknown_cost: sql`sum(${ofPart('calls_of_unknown_cost')})`,
  input_tokens: sql`sum(${ofPart('input_tokens')})`,
  output_tokens: sql`sum(${ofPart('output_tokens')})`,
};

/** The dimensions that sums by day have, in the columns of `usageDays`. */
export const DAYS = {
  day: sql`${usageDays.day}`,
  provider: sql`${usageDays.provider}`,
  model: sql`${usageDays.model}`,
  server: sql`${usageDays.server}`,
  tool: sql`${usageDays.tool}`,
  external_user: sql`${usageDays.externalUser}`,
  api_key: sql`${usageDays.apiKeyId}`,
  virtual_key: sql`${usageDays.virtualKeyId}`,
  outcome: sql`${usageDays.outcome}`,
  tags: sql`${usageDays.tags}`,
} as const;

/** All dimensions of calls. */
export const CALLS: Readonly<Record<keyof typeof DAYS | 'session_id', SQL>> = {
  day: sql`(${ledger.settledAt} at time zone 'UTC')::date`,
  session_id: sql`${ledger.sessionId}`,
  provider: sql`${ledger.provider}`,
  model: sql`${ledger.model}`,
  server: sql`${ledger.server}`,
  tool: sql`${ledger.tool}`,
  external_user: sql`${ledger.externalUser}`,
  api_key: sql`${ledger.apiKeyId}`,
  virtual_key: sql`${ledger.virtualKeyId}`,
  outcome: outcomeInSql,
  tags: sql`${ledger.tags}`,
};

/** Whether groups depend on a time zone that is not UTC. */
export const isLocal = ({ timezone, group_by: by }: Pick<UsageAsked, 'timezone' | 'group_by'>): boolean =>
  !/^(Etc\/)?UTC$/i.test(timezone) && (by.includes('day') || by.includes('month'));

/** Dimensions in SQL. */
type Columns = Readonly<Record<string, SQL>> & { readonly tags: SQL };

/** The dimensions of calls, with their days and months in a zone. */
function callsIn(zone: string): Columns {
  const local = sql`(${ledger.settledAt} at time zone ${zone}::text)`;
  return { ...CALLS, day: sql`${local}::date`, month: sql`to_char(${local}, ${MONTH}::text)` };
}

/** The same for days that each lie within one month of the zone. */
const daysIn = (zone: string): Columns => ({
  ...DAYS,
  month: sql`to_char((${usageDays.day} + time '12:00') at time zone 'UTC' at time zone ${zone}::text, ${MONTH}::text)`,
});

const MONTH = 'YYYY-MM';

/** The same for parts of days that each lie in one day of the zone. */
const PARTS: Columns = {
  ...DAYS,
  day: sql`part.local_day::date`,
  month: sql`to_char(part.local_day::date, ${sql.raw(`'${MONTH}'`)})`,
};

/** Reads the marks of an account. The report must use the same snapshot. */
export async function findMarks(tx: Transaction, accountId: string): Promise<UsageMarks> {
  const [row] = await tx.select().from(usageMarks).where(eq(usageMarks.accountId, accountId));
  const msOf = (mark: Date | null | undefined) => mark?.getTime() ?? Number.NEGATIVE_INFINITY;
  return {
    summedMs: msOf(row?.summedUntil),
    keptMs: msOf(row?.keptFrom),
    sumsMs: msOf(row?.sumsFrom),
    dividedMs: msOf(row?.dividedFrom),
  };
}

/** How a report divides its range into calls and sums. */
export function divideAsked(asked: UsageAsked, marks: UsageMarks): DividedRange {
  const { group_by: by, timezone, request_id: requestId, session_id: sessionId } = asked;
  const [from, to] = [asked.from.getTime(), asked.to.getTime()];
  // Sums know no sessions and no requests.
  if (requestId !== undefined || sessionId !== undefined || by.includes('session_id'))
    return { calls: [[from, to]], days: undefined, parts: [] };
  const unit = by.includes('day') ? ('day' as const) : ('month' as const);
  return divideRange({ from, to, local: isLocal(asked) ? { zone: timezone, unit } : undefined }, marks);
}

/**
 * Selects an account's total, and after it the groups in order, all, those after a page, or those that cost most: from the ledger, from
 * sums of whole days, and from sums of pieces of days.
 */
export function selectUsage(accountId: string, asked: UsageAsked, { calls, days, parts }: DividedRange): SQL {
  const { group_by: by, timezone } = asked;
  const selected = calls.map(([from, to]) => sumCalls(accountId, asked, from, to));
  if (days) {
    const which = and(
      eq(usageDays.accountId, accountId),
      gte(usageDays.day, dayOf(days.from)),
      lt(usageDays.day, dayOf(days.to)),
      days.without.length > 0 ? notInArray(usageDays.day, days.without.map(dayText)) : undefined,
      filter(asked, daysIn(timezone)),
    );
    selected.push(sumBy(pick(by, daysIn(timezone)), SUMS_OF_DAYS, sql`${usageDays} where ${which}`));
  }
  if (parts.length > 0)
    selected.push(sumBy(pick(by, PARTS), SUMS_OF_PARTS, partsOfDays(accountId, asked, parts)));
  // A report without calls and sums still has its total.
  if (selected.length === 0) selected.push(sumCalls(accountId, asked, 0, 0));
  const groups = sql`select ${list([...by.map(shown), ...TOTALS, isTotal(by)])} from (${sql.join(selected, sql` union all `)})
    as usage ${by.length > 0 ? sql`group by grouping sets ((${list(by.map(named))}), ())` : sql``}`;
  const counted = sql`select *, ${COUNT} as groups, ${IS_HUGE} from (${groups}) as usage`;
  const [left, wanted] = asked.after
    ? [COUNT, sql`where is_total = 1 or ${isAfter(by, asked.after)}`]
    : [sql`groups`, sql``];
  const [ranked, end] =
    asked.top === undefined ? [[], sql``] : [COSTLIEST, sql.raw(`limit ${asked.top + 1}`)];
  return sql`select *, ${left} as groups_left from (${counted}) as usage ${wanted}
    order by ${list([sql`is_total desc`, ...ranked, ...by.map(named)])} ${end}`;
}

/** The rows but the total. */
const COUNT = sql`(count(*) over () - 1)::text`;
/** Where no cost is known, calls tell groups apart. */
const COSTLIEST = [sql`coalesce(usage.cost::numeric, 0) desc`, sql`usage.calls::numeric desc`];

function sumCalls(accountId: string, asked: UsageAsked, from: number, to: number): SQL {
  const calls = callsIn(asked.timezone);
  const which = and(
    eq(ledger.accountId, accountId),
    gte(ledger.settledAt, new Date(from)),
    lt(ledger.settledAt, new Date(to)),
    asked.request_id === undefined ? undefined : eq(ledger.requestId, asked.request_id),
    filter(asked, calls),
  );
  return sumBy(pick(asked.group_by, calls), SUMS_OF_CALLS, sql`${ledger} where ${which}`);
}

/** Sums by day with the parts of their day in which they have calls, and with the sums up to the end of each part and up to its beginning. */
function partsOfDays(accountId: string, asked: UsageAsked, parts: readonly PartOfDay[]): SQL {
  const days = parts.map(({ day }) => day).toSorted();
  const rows = sql`json_to_recordset(${JSON.stringify(parts)}::json) as part (day date, first smallint, last smallint, local_day text)`;
  return sql`${rows} join ${usageDays} on ${usageDays.day} = part.day
    cross join lateral (select width_bucket(part.last, ${usageDays.pieces}) as last,
      width_bucket((part.first - 1)::smallint, ${usageDays.pieces}) as before offset 0) as place
    cross join lateral (select ${runningUntil('usage_days', sql`place.last`)} as last,
      ${runningUntil('usage_days', sql`place.before`)} as before offset 0) as until
    where ${and(
      eq(usageDays.accountId, accountId),
      gte(usageDays.day, sql`${days[0]}::date`),
      sql`${usageDays.day} <= ${days.at(-1)}::date`,
      sql`place.last > place.before`,
      filter(asked, PARTS),
    )}`;
}

const dayOf = (ms: number) => sql`(${new Date(ms).toISOString()}::timestamptz at time zone 'UTC')::date`;
export const named = (name: string) => sql`usage.${sql.identifier(name)}`;
export const list = (parts: readonly SQL[]) => sql.join([...parts], sql`, `);
export const as = (value: SQL, name: string) => sql`${value} as ${sql.identifier(name)}`;
/** As text, by which groups are ordered and a page continues. */
const shown = (name: UsageDimension) => as(sql`${named(name)}::text`, name);

const TOTALS = USAGE_SUMS.map((name) => as(sql`sum(${named(name)})::text`, name));
const isTotal = ([first]: readonly UsageDimension[]) =>
  as(first === undefined ? sql`1` : sql`grouping(${named(first)})`, 'is_total');

const LARGEST = list(USAGE_SUMS.map((name) => sql`abs(coalesce(${named(name)}::numeric, 0))`));
/** Whether a sum is above 2^53 − 1. */
const IS_HUGE = sql`(max(greatest(${LARGEST})) over () > ${String(Number.MAX_SAFE_INTEGER)}::numeric)::text as huge`;

/** Whether a group sorts after another one. Null sorts after all values. */
function isAfter(by: readonly UsageDimension[], group: readonly (string | null)[]): SQL {
  const beyond = by.map((name, i) => {
    const same = by.slice(0, i).map((each, j) => sql`${named(each)} is not distinct from ${group[j]}::text`);
    const value = group[i] ?? null;
    const own =
      value === null ? sql`false` : sql`(${named(name)} > ${value}::text or ${named(name)} is null)`;
    return sql.join([...same, own], sql` and `);
  });
  return sql.join(beyond, sql` or `);
}

export type Column = readonly [name: string, value: SQL];

export const pick = (names: readonly string[], from: Columns): Column[] =>
  names.map((name) => {
    const key = keyOf(name);
    return [name, (key === undefined ? from[name] : tagIn(from.tags, key)) ?? sql`null`];
  });

/** Sums rows by these columns. */
export function sumBy(columns: readonly Column[], sums: Partial<Sums>, rows: SQL): SQL {
  const selected = [...columns, ...Object.entries(sums)].map(([name, value]) => as(value, name));
  const groups = sql.raw(columns.length > 0 ? `group by ${columns.map((_, i) => i + 1).join(', ')}` : '');
  return sql`select ${list(selected)} from ${rows} ${groups}`;
}

function filter(asked: UsageAsked, from: Columns): SQL | undefined {
  const { external_user, session_id, provider, model, virtual_key, api_key, server, tool, outcome } = asked;
  const wanted = Object.entries({
    external_user,
    session_id,
    provider,
    model,
    virtual_key,
    api_key,
    server,
    tool,
    outcome,
  });
  return and(
    hasTags(from.tags, asked.metadata),
    ...wanted.map(([name, value]) => (value === undefined ? undefined : sql`${from[name]} = ${value}`)),
  );
}
