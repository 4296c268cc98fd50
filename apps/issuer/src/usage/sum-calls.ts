import { USAGE_SUMS, type UsageDimension, type UsageQuery } from '@presign/schema';
import { rowsOf, type Transaction } from '@presign/schema/database';
import { grants, ledger, usageDays } from '@presign/schema/tables';
import { and, eq, gte, lt, type SQL, sql } from 'drizzle-orm';

/** The calls to sum, and the dimensions to group them by. */
export type UsageAsked = Omit<UsageQuery, 'format' | 'group_by' | 'to'> & {
  readonly to: Date;
  readonly group_by: readonly UsageDimension[];
};

/** Exact sums: over many rows they may be larger than a JavaScript number holds. */
export type UsageSums = Readonly<Record<(typeof USAGE_SUMS)[number], bigint>>;

type Sums = Readonly<Record<keyof UsageSums, SQL>>;

/** A refund is a row of its own, and not a call. */
const isCall = sql`${ledger.outcome} <> 'refunded'`;
const SUMS_OF_CALLS: Sums = {
  calls: sql`count(*) filter (where ${isCall})`,
  uses: sql`sum(${ledger.uses})`,
  cost: sql`sum(${ledger.costMicrousd})`,
  calls_of_unknown_cost: sql`count(*) filter (where ${isCall} and ${ledger.costMicrousd} is null)`,
  input_tokens: sql`sum(${ledger.inputTokens})`,
  output_tokens: sql`sum(${ledger.outputTokens})`,
};
const SUMS_OF_DAYS: Sums = {
  calls: sql`sum(${usageDays.calls})`,
  uses: sql`sum(${usageDays.uses})`,
  cost: sql`sum(${usageDays.costMicrousd})`,
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
} as const;

/** All dimensions, in a query that joins `ledger` and, as a left join for virtual keys, `grants`. */
const CALLS: Readonly<Record<keyof typeof DAYS | 'session', SQL>> = {
  day: sql`(${ledger.settledAt} at time zone 'UTC')::date`,
  session: sql`${ledger.sessionId}`,
  provider: sql`${ledger.provider}`,
  model: sql`${ledger.model}`,
  server: sql`${ledger.server}`,
  tool: sql`${ledger.tool}`,
  external_user: sql`${ledger.externalUser}`,
  api_key: sql`${ledger.apiKeyId}`,
  // Calls of an older issuer have it from their grant, which gives it to them before it is deleted.
  virtual_key: sql`coalesce(${ledger.virtualKeyId}, ${grants.virtualKeyId})`,
};
const JOINED = sql`${ledger} left join ${grants} on ${grants.id} = ${ledger.grantId}`;

/** Selects an account's total, and after it the groups in order. */
export function selectUsage(accountId: string, asked: UsageAsked): SQL {
  const { group_by: by, request_id: requestId } = asked;
  const ofCalls = and(
    eq(ledger.accountId, accountId),
    gte(ledger.settledAt, asked.from),
    lt(ledger.settledAt, asked.to),
    requestId === undefined ? undefined : eq(ledger.requestId, requestId),
    filter(asked, CALLS),
  );
  const joins = asked.virtual_key !== undefined || by.includes('virtual_key');
  const parts = [sumBy(pick(by, CALLS), SUMS_OF_CALLS, sql`${joins ? JOINED : ledger} where ${ofCalls}`)];
  // Sums by day know no sessions and no requests.
  if (requestId === undefined && asked.session_id === undefined && !by.includes('session')) {
    const ofDays = and(
      eq(usageDays.accountId, accountId),
      gte(usageDays.day, dayOf(asked.from)),
      lt(usageDays.day, dayOf(asked.to)),
      filter(asked, DAYS),
    );
    parts.push(sumBy(pick(by, DAYS), SUMS_OF_DAYS, sql`${usageDays} where ${ofDays}`));
  }
  return sql`select ${list(by.map(shown))} ${by.length > 0 ? sql`,` : sql``} ${list(TOTALS)}, ${OVER}
    from (${sql.join(parts, sql` union all `)}) as usage ${by.length > 0 ? inOrder(by) : sql``}`;
}

const dayOf = (time: Date) => sql`(${time.toISOString()}::timestamptz at time zone 'UTC')::date`;
const named = (name: string) => sql`usage.${sql.identifier(name)}`;
const list = (parts: readonly SQL[]) => sql.join([...parts], sql`, `);
const as = (value: SQL, name: string) => sql`${value} as ${sql.identifier(name)}`;
const shown = (name: UsageDimension) =>
  as(name === 'day' ? sql`to_char(${named(name)}, 'YYYY-MM-DD')` : named(name), name);

const TOTALS = USAGE_SUMS.map((name) => as(sql`sum(${named(name)})::text`, name));
const LARGEST = list(USAGE_SUMS.map((name) => sql`abs(coalesce(sum(${named(name)}), 0))`));
/** How many groups there are, and whether a sum is above 2^53 − 1. */
const OVER = sql`(count(*) over () - 1)::text as groups,
  (max(greatest(${LARGEST})) over () > ${String(Number.MAX_SAFE_INTEGER)}::numeric)::text as huge`;

function inOrder(by: readonly UsageDimension[]): SQL {
  const all = by.map(named);
  return sql`group by grouping sets ((${list(all)}), ()) order by grouping(${all[0]}) desc, ${list(all)}`;
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
  const { external_user, session_id: session, provider, model, virtual_key, api_key } = asked;
  const wanted = Object.entries({ external_user, session, provider, model, virtual_key, api_key });
  return and(
    ...wanted.map(([name, value]) => (value === undefined ? undefined : sql`${from[name]} = ${value}`)),
  );
}

/** The end of the last day with sums by day, of which the ledger may no longer have the calls. Undefined: there are none. */
export async function findSummedBefore(tx: Transaction, accountId: string): Promise<Date | undefined> {
  const last = sql`select (max(${usageDays.day}) + 1)::text as next from ${usageDays}
    where ${usageDays.accountId} = ${accountId}`;
  const next = rowsOf(await tx.execute(last))[0]?.['next'];
  return next ? new Date(`${next}T00:00:00Z`) : undefined;
}

const SUM_COLUMNS = [
  'calls',
  'uses',
  'cost_microusd',
  'calls_of_unknown_cost',
  'input_tokens',
  'output_tokens',
] as const;

/** Adds calls to their sums by day. Call it in the statement that takes them from the ledger. */
export function addToDays(calls: SQL): SQL {
  const names = Object.keys(DAYS);
  const by: Column[] = [['account', sql`${ledger.accountId}`], ...pick(names, CALLS)];
  const rows = sql`${calls} as ${ledger} left join ${grants} on ${grants.id} = ${ledger.grantId}`;
  const values = list(by.map(([name]) => named(name)));
  const id = sql`encode(substr(sha256(convert_to(json_build_array(${values})::text, 'UTF8')), 1, 16), 'hex')::uuid`;
  const sums = list(USAGE_SUMS.map((name) => sql`coalesce(${named(name)}, 0)`));
  const added = SUM_COLUMNS.map((name) => `${name} = usage_days.${name} + excluded.${name}`);
  return sql`insert into ${usageDays} (id, account_id, day, provider, model, server, tool, external_user, api_key_id,
      virtual_key_id, ${sql.raw(SUM_COLUMNS.join(', '))})
    select ${id}, ${values}, ${sums} from (${sumBy(by, SUMS_OF_CALLS, rows)}) as usage
    on conflict (id) do update set ${sql.raw(added.join(', '))}`;
}
