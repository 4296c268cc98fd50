import {
  RefusedError,
  USAGE_SUMS,
  type UsageDimension,
  type UsageQuery,
  type UsageReport,
  usageQuery,
  usageReport,
} from '@presign/schema';
import { type Database, sqlState } from '@presign/schema/database';
import { grants, ledger } from '@presign/schema/tables';
import { and, eq, gte, lt, type SQL, sql } from 'drizzle-orm';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { IssuerEnv } from '../deps.ts';
import { inTurn } from '../in-time.ts';
import { DATABASE_UNAVAILABLE } from '../middleware/errors.ts';
import { route } from '../route.ts';

/** Groups of one answer, all of which are in memory until it is sent. */
const MOST_GROUPS = 50_000;

/** A little longer than the statement timeout of Postgres, so that its own error comes first. */
const LONGEST_MS = 11_000;

/** `GET /v1/usage`: sums the account's settled calls, for billing. */
export const getUsage = route(
  {
    method: 'get',
    path: '/v1/usage',
    summary: 'Sum settled calls over a range, as JSON or CSV',
    scope: 'read',
    query: usageQuery,
    answer: usageReport,
    csv: true,
  },
  (deps) => {
    const take = inTurn(LONGEST_MS);
    return async ({ apiKey, query, c }) => {
      const asked = {
        ...query,
        to: query.to ?? new Date(deps.now()),
        group_by: query.group_by ?? [],
      };
      if (asked.from >= asked.to) throw refuse('from', 'expected a time before to, or before now without it');
      const sum = () => sumUsage(deps.db, apiKey.accountId, asked, MOST_GROUPS);
      const groups = await take(c, sum).catch(refuseTooLong);
      if (groups.length > MOST_GROUPS) throw refuse('group_by', TOO_MANY);
      c.header('vary', 'Accept');
      return wantsCsv(c, query) ? answerCsv(c, asked, groups) : reportOf(asked, groups);
    };
  },
);

const TOO_MANY = `the answer would have more than ${MOST_GROUPS} groups; group by less, or ask for a shorter range`;

const refuse = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

/** SQLSTATE 57014, query_canceled: Postgres works, but the sum takes longer than one statement may. */
function refuseTooLong(cause: unknown): never {
  if (sqlState(cause) !== '57014') throw cause;
  const message = 'This range could not be summed in time. Ask for a shorter one.';
  throw new RefusedError({ ...DATABASE_UNAVAILABLE, message }, { cause });
}

/** The rows of the ledger to sum, and the dimensions to group them by. */
type UsageAsked = Omit<UsageQuery, 'format' | 'group_by' | 'to'> & {
  readonly to: Date;
  readonly group_by: readonly UsageDimension[];
};

/** Exact sums: over many rows they may be larger than a JavaScript number holds. */
type UsageSums = Readonly<Record<(typeof USAGE_SUMS)[number], bigint>>;

/** Rows of the ledger with the same values of the dimensions, and their sums. */
type UsageGroup = {
  /** In the order of the request; null where these rows have no value. */
  readonly by: readonly (readonly [UsageDimension, string | null])[];
  readonly sums: UsageSums;
};

/** Sums an account's ledger in one statement, so that all groups are of one moment. Returns up to `most` + 1 groups. */
async function sumUsage(
  db: Database,
  accountId: string,
  asked: UsageAsked,
  most: number,
): Promise<UsageGroup[]> {
  const dimensions = asked.group_by.map((name) => [name, DIMENSIONS[name]] as const);
  const selected = dimensions.map(([name, { shown, grouped }]) => [name, shown ?? grouped] as const);
  const sums = USAGE_SUMS.map((name) => [name, SUMS[name]] as const);
  const query = db
    .select(Object.fromEntries<SQL>([...selected, ...sums]))
    .from(ledger)
    .$dynamic();
  // Grants are never deleted, and a grant's virtual key never changes.
  const joinsGrants = asked.virtual_key !== undefined || asked.group_by.includes('virtual_key');
  if (joinsGrants) query.leftJoin(grants, eq(grants.id, ledger.grantId));
  query.where(selects(accountId, asked));
  const grouped = dimensions.map(([, dimension]) => dimension.grouped);
  if (grouped.length > 0) query.groupBy(...grouped).orderBy(...grouped);
  const rows = (await query.limit(most + 1)) as Record<string, string | null>[];
  return rows.map((row) => ({
    by: asked.group_by.map((name) => [name, row[name] ?? null] as const),
    sums: sumsOf((name) => BigInt(row[name] ?? 0)),
  }));
}

const sumsOf = (sum: (name: keyof UsageSums) => bigint) =>
  Object.fromEntries(USAGE_SUMS.map((name) => [name, sum(name)])) as UsageSums;

/** An expression to group by, and another one to show if they differ. */
type Dimension = { readonly grouped: SQL; readonly shown?: SQL };

const day = sql`(${ledger.settledAt} at time zone 'UTC')::date`;
const DIMENSIONS: Readonly<Record<UsageDimension, Dimension>> = {
  external_user: { grouped: sql`${ledger.externalUser}` },
  session: { grouped: sql`${ledger.sessionId}` },
  model: { grouped: sql`${ledger.model}` },
  provider: { grouped: sql`${ledger.provider}` },
  virtual_key: { grouped: sql`${grants.virtualKeyId}` },
  server: { grouped: sql`${ledger.server}` },
  tool: { grouped: sql`${ledger.tool}` },
  day: { grouped: day, shown: sql`to_char(${day}, 'YYYY-MM-DD')` },
};

/** A refund is a row of its own, and not a call. All drivers read text alike, at any size. */
const isCall = sql`${ledger.outcome} <> 'refunded'`;
const SUMS: Readonly<Record<keyof UsageSums, SQL>> = {
  calls: sql`(count(*) filter (where ${isCall}))::text`,
  uses: sql`sum(${ledger.uses})::text`,
  cost: sql`sum(${ledger.costMicrousd})::text`,
  calls_of_unknown_cost: sql`(count(*) filter (where ${isCall} and ${ledger.costMicrousd} is null))::text`,
  input_tokens: sql`sum(${ledger.inputTokens})::text`,
  output_tokens: sql`sum(${ledger.outputTokens})::text`,
};

function selects(accountId: string, asked: UsageAsked): SQL | undefined {
  const { external_user: user, session_id: session, provider, model, virtual_key: virtualKey } = asked;
  return and(
    eq(ledger.accountId, accountId),
    gte(ledger.settledAt, asked.from),
    lt(ledger.settledAt, asked.to),
    user === undefined ? undefined : eq(ledger.externalUser, user),
    session === undefined ? undefined : eq(ledger.sessionId, session),
    provider === undefined ? undefined : eq(ledger.provider, provider),
    model === undefined ? undefined : eq(ledger.model, model),
    virtualKey === undefined ? undefined : eq(grants.virtualKeyId, virtualKey),
  );
}

const wantsCsv = (c: Context<IssuerEnv>, { format }: UsageQuery) =>
  format === undefined
    ? accepts(c, { header: 'Accept', supports: ['application/json', 'text/csv'], default: '' }) === 'text/csv'
    : format === 'csv';

function answerCsv(
  c: Context<IssuerEnv>,
  { from, to, group_by: by }: UsageAsked,
  groups: readonly UsageGroup[],
) {
  const [first, last] = [from, to].map((time) => time.toISOString().slice(0, 19).replaceAll(':', ''));
  c.header('content-type', 'text/csv; charset=utf-8; header=present');
  c.header('content-disposition', `attachment; filename="usage-${first}Z-${last}Z.csv"`);
  return c.body(writeCsv(by, groups));
}

/** Writes groups as CSV (RFC 4180): a header, one line for each group, CRLF at the end of every line. */
function writeCsv(by: readonly UsageDimension[], groups: readonly UsageGroup[]): string {
  const lines = groups.map((group) => [
    ...group.by.map(([, value]) => textCell(value)),
    ...USAGE_SUMS.map((name) => String(group.sums[name])),
  ]);
  return [[...by, ...USAGE_SUMS], ...lines].map((cells) => `${cells.join(',')}\r\n`).join('');
}

/** Null is an empty cell; an empty text is a pair of quotes. */
function textCell(value: string | null): string {
  if (value === null) return '';
  const safe = STARTS_FORMULA.test(value) ? `'${value}` : value;
  return safe === '' || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * A spreadsheet runs a cell with such a start as a formula, and the holder of a URL can choose the text (OWASP, "CSV
 * Injection", which also names the full-width forms). Numbers are left alone: a sum may be negative.
 */
const STARTS_FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

const reportOf = ({ from, to, group_by: by }: UsageAsked, groups: readonly UsageGroup[]): UsageReport => ({
  from: from.getTime() / 1000,
  to: to.getTime() / 1000,
  group_by: [...by],
  data: groups.map((group) => ({ ...Object.fromEntries(group.by), ...inNumbers(group.sums) })),
  total: inNumbers(sumsOf((name) => groups.reduce((sum, group) => sum + group.sums[name], 0n))),
});

/** Refuses a sum above 2^53 − 1: JSON parsers would read another number (RFC 8259 §6). */
function inNumbers(sums: UsageSums): UsageReport['total'] {
  const pairs = Object.entries(sums).map(([name, sum]) => [name, Number(sum)] as const);
  if (pairs.every(([, sum]) => Number.isSafeInteger(sum)))
    return Object.fromEntries(pairs) as UsageReport['total'];
  throw refuse('format', 'these sums are above 2^53 − 1, which JSON cannot hold exactly; ask for csv');
}
