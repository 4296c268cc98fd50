import { UNFAILED, USAGE_SUMS, type UsageDimension, type UsageQuery } from '@presign/schema';
import { ledger, NEVER_HEARD, usageDays, usageMarks } from '@presign/schema/ledger-tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, gte, lt, type SQL, sql } from 'drizzle-orm';
import { outcomeInSql } from './outcome-in-sql.ts';

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
};

/** The marks of an account in milliseconds, each at a midnight in UTC. */
export type UsageMarks = {
  /** Days before it are in the sums. */
  readonly summedMs: number;
  /** Calls before it may be gone from the ledger. */
  readonly keptMs: number;
  /** Sums before it are deleted, or about to be. */
  readonly sumsMs: number;
};

/** Reads the marks of an account. The report must be of the same snapshot. */
export async function findMarks(tx: Transaction, accountId: string): Promise<UsageMarks> {
  const [row] = await tx.select().from(usageMarks).where(eq(usageMarks.accountId, accountId));
  const summedMs = floorDay(row?.summedUntil.getTime() ?? Number.NEGATIVE_INFINITY);
  const msOf = (mark: Date | null | undefined) => mark?.getTime() ?? Number.NEGATIVE_INFINITY;
  return { summedMs, keptMs: msOf(row?.keptFrom), sumsMs: msOf(row?.sumsFrom) };
}

const DAY_MS = 86_400_000;
const floorDay = (ms: number) => Math.floor(ms / DAY_MS) * DAY_MS;
const ceilDay = (ms: number) => Math.ceil(ms / DAY_MS) * DAY_MS;

/**
 * Selects an account's total, and after it the groups in order, all or those after a page: from the ledger, and whole days
 * from their sums.
 */
export function selectUsage(accountId: string, asked: UsageAsked, { summedMs }: UsageMarks): SQL {
  const { group_by: by, request_id: requestId } = asked;
  const [from, to] = [asked.from.getTime(), asked.to.getTime()];
  // Sums by day know no sessions and no requests.
  const ofCalls = requestId !== undefined || asked.session_id !== undefined || by.includes('session_id');
  const first = ceilDay(from);
  const end = ofCalls ? first : Math.min(floorDay(to), summedMs);
  const ranges = end > first ? [[from, first] as const, [end, to] as const] : [[from, to] as const];
  const parts = ranges.map(([begin, until]) => {
    const which = and(
      eq(ledger.accountId, accountId),
      gte(ledger.settledAt, new Date(begin)),
      lt(ledger.settledAt, new Date(until)),
      requestId === undefined ? undefined : eq(ledger.requestId, requestId),
      filter(asked, CALLS),
    );
    return sumBy(pick(by, CALLS), SUMS_OF_CALLS, sql`${ledger} where ${which}`);
  });
  if (ranges.length > 1) {
    const which = and(
      eq(usageDays.accountId, accountId),
      gte(usageDays.day, dayOf(first)),
      lt(usageDays.day, dayOf(end)),
      filter(asked, DAYS),
    );
    parts.push(sumBy(pick(by, DAYS), SUMS_OF_DAYS, sql`${usageDays} where ${which}`));
  }
  const groups = sql`select ${list([...by.map(shown), ...TOTALS, isTotal(by)])} from (${sql.join(parts, sql` union all `)})
    as usage ${by.length > 0 ? sql`group by grouping sets ((${list(by.map(named))}), ())` : sql``}`;
  const wanted = asked.after ? sql`where is_total = 1 or ${isAfter(by, asked.after)}` : sql``;
  return sql`select *, (count(*) over () - 1)::text as groups, ${IS_HUGE} from (${groups}) as usage ${wanted}
    order by ${list([sql`is_total desc`, ...by.map(named)])}`;
}

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

const pick = (names: readonly string[], from: Readonly<Record<string, SQL>>): Column[] =>
  names.map((name) => [name, from[name] ?? sql`null`]);

/** Sums rows by these columns. */
function sumBy(columns: readonly Column[], sums: Sums, rows: SQL): SQL {
  const selected = [...columns, ...Object.entries(sums)].map(([name, value]) => as(value, name));
  const groups = sql.raw(columns.length > 0 ? `group by ${columns.map((_, i) => i + 1).join(', ')}` : '');
  return sql`select ${list(selected)} from ${rows} ${groups}`;
}

function filter(asked: UsageAsked, from: Readonly<Record<string, SQL>>): SQL | undefined {
  const { external_user, session_id, provider, model, virtual_key, api_key, outcome } = asked;
  const wanted = Object.entries({
    external_user,
    session_id,
    provider,
    model,
    virtual_key,
    api_key,
    outcome,
  });
  return and(
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

/** Adds calls to their sums by day: rows of a table, or of a `with` query, that has the columns of the ledger. */
export function addToDays(calls: SQL): SQL {
  const names = Object.keys(DAYS);
  const by: Column[] = [['account', sql`${ledger.accountId}`], ...pick(names, CALLS)];
  const rows = sql`${calls} as ${ledger}`;
  const values = list(by.map(([name]) => named(name)));
  const id = sql`encode(substr(sha256(convert_to(json_build_array(${values})::text, 'UTF8')), 1, 16), 'hex')::uuid`;
  const columns = Object.values(SUM_COLUMNS);
  const sums = list(Object.keys(SUM_COLUMNS).map((name) => sql`coalesce(${named(name)}, 0)`));
  const added = columns.map((name) => `${name} = usage_days.${name} + excluded.${name}`);
  // In one order, so that two transactions that add never deadlock.
  return sql`insert into ${usageDays} (id, account_id, day, provider, model, server, tool, external_user, api_key_id,
      virtual_key_id, outcome, ${sql.raw(columns.join(', '))})
    select ${id}, ${values}, ${sums} from (${sumBy(by, SUMS_OF_CALLS, rows)}) as usage
    order by 1
    on conflict (id) do update set ${sql.raw(added.join(', '))}`;
}
