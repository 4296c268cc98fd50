import { startsOfMonths, UNFAILED, USAGE_SUMS, type UsageDimension, type UsageQuery } from '@presign/schema';
import { ledger, NEVER_HEARD, usageDays, usageMarks } from '@presign/schema/ledger-tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, gte, lt, notInArray, type SQL, sql } from 'drizzle-orm';
import { outcomeInSql } from './outcome-in-sql.ts';
import { hasTags, keyOf, tagIn } from './tags-asked.ts';

/** The calls to sum, and the dimensions to group them by. */
export type UsageAsked = Omit<UsageQuery, 'format' | 'group_by' | 'from' | 'to' | 'cursor'> & {
  readonly from: Date;
  readonly to: Date;
  readonly group_by: readonly UsageDimension[];
  /** The values of the last group that the page before had. */
  readonly after?: readonly (string | null)[] | undefined;
};

const UNFAILED_IN_SQL = sql.raw(UNFAILED.map((name) => `'${name}'`).join(', '));

type Sums = Readonly<Record<(typeof USAGE_SUMS)[number], SQL>>;

/** A refund is a row of its own, and not a call. */
const isCall = sql`${ledger.outcome} <> 'refunded'`;
/** The refund of an MCP call that the gateway refused, because Redis had not answered: so its charge is no call either. */
const isRefusal = sql`${ledger.outcome} = 'refunded' and ${ledger.failure} = ${NEVER_HEARD}`;
const SUMS_OF_CALLS: Sums = {
  calls: sql`count(*) filter (where ${isCall}) - count(*) filter (where ${isRefusal})`,
  uses: sql`sum(${ledger.uses})`,
  cost: sql`sum(${ledger.costMicrousd})`,
  failed_calls: sql`count(*) filter (where ${outcomeInSql} not in (${UNFAILED_IN_SQL}))`,
  calls_of_unknown_cost: sql`count(*) filter (where ${isCall} and ${ledger.costMicrousd} is null)`,
  input_tokens: sql`sum(${ledger.inputTokens})`,
  output_tokens: sql`sum(${ledger.outputTokens})`,
};
const SUMS_OF_DAYS: Sums = {
  calls: sql`sum(${usageDays.calls})`,
  uses: sql`sum(${usageDays.uses})`,
  cost: sql`sum(${usageDays.costMicrousd})`,
  failed_calls: sql`coalesce(sum(${usageDays.calls}) filter (where ${usageDays.outcome} not in (${UNFAILED_IN_SQL})), 0)`,
  calls_of_unknown_cost: sql`sum(${usageDays.callsOfUnknownCost})`,
  input_tokens: sql`sum(${usageDays.inputTokens})`,
  output_tokens: sql`sum(${usageDays.outputTokens})`,
};

/** The dimensions that sums by day have, in the columns of `usageDays`. */
const DAYS = {
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
const CALLS: Readonly<Record<keyof typeof DAYS | 'session_id', SQL>> = {
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

/** The same of days that are each within one month of the zone. */
const daysIn = (zone: string): Columns => ({
  ...DAYS,
  month: sql`to_char((${usageDays.day} + time '12:00') at time zone 'UTC' at time zone ${zone}::text, ${MONTH}::text)`,
});

const MONTH = 'YYYY-MM';

/** The marks of an account in milliseconds. All but the first are at a midnight in UTC. */
export type UsageMarks = {
  /** Calls before it are in the sums of their days, and later ones are not. */
  readonly summedMs: number;
  /** Calls before it may be gone from the ledger. */
  readonly keptMs: number;
  /** Sums before it are deleted, or about to be. */
  readonly sumsMs: number;
};

/** Reads the marks of an account. The report must be of the same snapshot. */
export async function findMarks(tx: Transaction, accountId: string): Promise<UsageMarks> {
  const [row] = await tx.select().from(usageMarks).where(eq(usageMarks.accountId, accountId));
  const msOf = (mark: Date | null | undefined) => mark?.getTime() ?? Number.NEGATIVE_INFINITY;
  return { summedMs: msOf(row?.summedUntil), keptMs: msOf(row?.keptFrom), sumsMs: msOf(row?.sumsFrom) };
}

const DAY_MS = 86_400_000;
const floorDay = (ms: number) => Math.floor(ms / DAY_MS) * DAY_MS;
const ceilDay = (ms: number) => Math.ceil(ms / DAY_MS) * DAY_MS;

/**
 * Selects an account's total, and after it the groups in order, all or those after a page: from the ledger, and whole days
 * from their sums.
 */
export function selectUsage(accountId: string, asked: UsageAsked, { summedMs }: UsageMarks): SQL {
  const { group_by: by, request_id: requestId, timezone } = asked;
  const [from, to] = [asked.from.getTime(), asked.to.getTime()];
  const [calls, days] = [callsIn(timezone), daysIn(timezone)];
  // Sums by day know no sessions, no requests, and no days of another zone.
  const ofCalls =
    requestId !== undefined ||
    asked.session_id !== undefined ||
    by.includes('session_id') ||
    (isLocal(asked) && by.includes('day'));
  const first = ceilDay(from);
  // The sums of the day of the mark have its calls before the mark.
  const end = ofCalls ? first : to < summedMs ? floorDay(to) : summedMs;
  const divided = isLocal(asked) ? daysOfTwoMonths(first, ceilDay(end), timezone) : [];
  const ranges = end > first ? [[from, first] as const, [end, to] as const] : [[from, to] as const];
  for (const day of divided) ranges.push([day, Math.min(day + DAY_MS, end)] as const);
  const parts = ranges.map(([begin, until]) => {
    const which = and(
      eq(ledger.accountId, accountId),
      gte(ledger.settledAt, new Date(begin)),
      lt(ledger.settledAt, new Date(until)),
      requestId === undefined ? undefined : eq(ledger.requestId, requestId),
      filter(asked, calls),
    );
    return sumBy(pick(by, calls), SUMS_OF_CALLS, sql`${ledger} where ${which}`);
  });
  if (end > first) {
    const which = and(
      eq(usageDays.accountId, accountId),
      gte(usageDays.day, dayOf(first)),
      lt(usageDays.day, dayOf(ceilDay(end))),
      divided.length > 0 ? notInArray(usageDays.day, divided.map(dayText)) : undefined,
      filter(asked, days),
    );
    parts.push(sumBy(pick(by, days), SUMS_OF_DAYS, sql`${usageDays} where ${which}`));
  }
  const groups = sql`select ${list([...by.map(shown), ...TOTALS, isTotal(by)])} from (${sql.join(parts, sql` union all `)})
    as usage ${by.length > 0 ? sql`group by grouping sets ((${list(by.map(named))}), ())` : sql``}`;
  const wanted = asked.after ? sql`where is_total = 1 or ${isAfter(by, asked.after)}` : sql``;
  return sql`select *, (count(*) over () - 1)::text as groups, ${IS_HUGE} from (${groups}) as usage ${wanted}
    order by ${list([sql`is_total desc`, ...by.map(named)])}`;
}

/** The days of UTC between these in which a month of the zone ends: their sums are of two months. */
function daysOfTwoMonths(first: number, end: number, zone: string): number[] {
  if (end <= first) return [];
  const starts = startsOfMonths(new Date(first), new Date(end), zone).map((start) => start.getTime());
  return starts.filter((start) => start !== floorDay(start)).map(floorDay);
}

const dayText = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const dayOf = (ms: number) => sql`(${new Date(ms).toISOString()}::timestamptz at time zone 'UTC')::date`;
const named = (name: string) => sql`usage.${sql.identifier(name)}`;
const list = (parts: readonly SQL[]) => sql.join([...parts], sql`, `);
export const as = (value: SQL, name: string) => sql`${value} as ${sql.identifier(name)}`;
/** As text, by which groups are ordered and a page continues. */
const shown = (name: UsageDimension) => as(sql`${named(name)}::text`, name);

const TOTALS = USAGE_SUMS.map((name) => as(sql`sum(${named(name)})::text`, name));
const isTotal = ([first]: readonly UsageDimension[]) =>
  as(first === undefined ? sql`1` : sql`grouping(${named(first)})`, 'is_total');

const LARGEST = list(USAGE_SUMS.map((name) => sql`abs(coalesce(${named(name)}::numeric, 0))`));
/** Whether a sum is above 2^53 − 1. */
const IS_HUGE = sql`(max(greatest(${LARGEST})) over () > ${String(Number.MAX_SAFE_INTEGER)}::numeric)::text as huge`;

/** Whether a group stands behind another one. Null stands behind all values. */
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

type Column = readonly [name: string, value: SQL];

const pick = (names: readonly string[], from: Columns): Column[] =>
  names.map((name) => {
    const key = keyOf(name);
    return [name, (key === undefined ? from[name] : tagIn(from.tags, key)) ?? sql`null`];
  });

/** Sums rows by these columns. */
function sumBy(columns: readonly Column[], sums: Sums, rows: SQL): SQL {
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

/** The columns of the sums that days have. Calls that failed follow from their outcome. */
const SUM_COLUMNS = {
  calls: 'calls',
  uses: 'uses',
  cost: 'cost_microusd',
  calls_of_unknown_cost: 'calls_of_unknown_cost',
  input_tokens: 'input_tokens',
  output_tokens: 'output_tokens',
} as const;

const SUM_NAMES = Object.values(SUM_COLUMNS);

/**
 * Sums of calls by day with their ids: rows of a table, or of a `with` query, that has the columns of the ledger. In one order, so that two
 * transactions that add never deadlock.
 */
function sumsOfDays(calls: SQL): SQL {
  const by: Column[] = [['account', sql`${ledger.accountId}`], ...pick(Object.keys(DAYS), CALLS)];
  const values = list(by.map(([name]) => named(name)));
  const id = sql`encode(substr(sha256(convert_to(json_build_array(${values})::text, 'UTF8')), 1, 16), 'hex')::uuid`;
  const sums = list(
    Object.entries(SUM_COLUMNS).map(([name, column]) => as(sql`coalesce(${named(name)}, 0)`, column)),
  );
  return sql`select ${id} as id, ${values}, ${sums}
    from (${sumBy(by, SUMS_OF_CALLS, sql`${calls} as ${ledger}`)}) as usage order by 1`;
}

/** Adds calls to their sums by day. */
export function addToDays(calls: SQL): SQL {
  const added = SUM_NAMES.map((name) => `${name} = usage_days.${name} + excluded.${name}`);
  return sql`insert into ${usageDays} (id, account_id, day, provider, model, server, tool, external_user, api_key_id,
      virtual_key_id, outcome, tags, ${sql.raw(SUM_NAMES.join(', '))})
    ${sumsOfDays(calls)}
    on conflict (id) do update set ${sql.raw(added.join(', '))}`;
}

/** Takes calls out of their sums by day. A sum that they alone made goes. */
export function takeFromDays(calls: SQL): SQL {
  const all = (of: string) => sql.raw(`(${SUM_NAMES.map((name) => `${of}.${name}`).join(', ')})`);
  const left = SUM_NAMES.map((name) => `${name} = usage_days.${name} - taken.${name}`);
  return sql`, taken as materialized (${sumsOfDays(calls)}),
    gone as (delete from ${usageDays} using taken where usage_days.id = taken.id and ${all('usage_days')} = ${all('taken')})
    update ${usageDays} set ${sql.raw(left.join(', '))} from taken
    where usage_days.id = taken.id and ${all('usage_days')} <> ${all('taken')}`;
}
