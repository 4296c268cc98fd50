import { USAGE_SUMS, type UsageDimension, type UsageQuery } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { grants, ledger } from '@presign/schema/tables';
import { and, eq, gte, lt, type SQL, sql } from 'drizzle-orm';

/** Which rows of the ledger, and what they are summed by. */
export type UsageAsked = Omit<UsageQuery, 'format' | 'group_by' | 'to'> & {
  readonly to: Date;
  readonly group_by: readonly UsageDimension[];
};

/** What is summed, exactly: a sum of many rows may be larger than a JavaScript number holds. */
export type UsageSums = Readonly<Record<(typeof USAGE_SUMS)[number], bigint>>;

/** Rows of the ledger that have something in common, and what they come to. */
export type UsageGroup = {
  /** In the order they were asked for; null where these rows have none. */
  readonly by: readonly (readonly [UsageDimension, string | null])[];
  readonly sums: UsageSums;
};

/**
 * Sums an account's ledger in one statement, so that all groups are of one moment.
 * @param most one group more is read, if there is one
 */
export async function sumUsage(
  db: Database,
  accountId: string,
  asked: UsageAsked,
  most: number,
): Promise<UsageGroup[]> {
  const dimensions = asked.group_by.map((name) => [name, DIMENSIONS[name]] as const);
  const selected = dimensions.map(([name, { told, grouped }]) => [name, told ?? grouped] as const);
  const sums = USAGE_SUMS.map((name) => [name, SUMS[name]] as const);
  const query = db
    .select(Object.fromEntries<SQL>([...selected, ...sums]))
    .from(ledger)
    .$dynamic();
  // Grants are never deleted, and a grant's virtual key never changes.
  const joinsGrants = asked.virtual_key !== undefined || asked.group_by.includes('virtual_key');
  if (joinsGrants) query.leftJoin(grants, eq(grants.id, ledger.grantId));
  query.where(chosen(accountId, asked));
  const grouped = dimensions.map(([, dimension]) => dimension.grouped);
  if (grouped.length > 0) query.groupBy(...grouped).orderBy(...grouped);
  const rows = (await query.limit(most + 1)) as Record<string, string | null>[];
  return rows.map((row) => ({
    by: asked.group_by.map((name) => [name, row[name] ?? null] as const),
    sums: sumsOf((name) => BigInt(row[name] ?? 0)),
  }));
}

/** What several groups come to together. */
export const totalOf = (groups: readonly UsageGroup[]): UsageSums =>
  sumsOf((name) => groups.reduce((sum, group) => sum + group.sums[name], 0n));

const sumsOf = (sum: (name: keyof UsageSums) => bigint) =>
  Object.fromEntries(USAGE_SUMS.map((name) => [name, sum(name)])) as UsageSums;

/** What rows are grouped by, and what is told of it where that is something else. */
type Dimension = { readonly grouped: SQL; readonly told?: SQL };

const day = sql`(${ledger.settledAt} at time zone 'UTC')::date`;
const DIMENSIONS: Readonly<Record<UsageDimension, Dimension>> = {
  external_user: { grouped: sql`${ledger.externalUser}` },
  session: { grouped: sql`${ledger.sessionId}` },
  model: { grouped: sql`${ledger.model}` },
  provider: { grouped: sql`${ledger.provider}` },
  virtual_key: { grouped: sql`${grants.virtualKeyId}` },
  server: { grouped: sql`${ledger.server}` },
  tool: { grouped: sql`${ledger.tool}` },
  day: { grouped: day, told: sql`to_char(${day}, 'YYYY-MM-DD')` },
};

/** A refund is a row of its own, and no call. As text, which every driver reads alike, at any size. */
const isCall = sql`${ledger.outcome} <> 'refunded'`;
const SUMS: Readonly<Record<keyof UsageSums, SQL>> = {
  calls: sql`(count(*) filter (where ${isCall}))::text`,
  uses: sql`sum(${ledger.uses})::text`,
  cost: sql`sum(${ledger.costMicrousd})::text`,
  calls_of_unknown_cost: sql`(count(*) filter (where ${isCall} and ${ledger.costMicrousd} is null))::text`,
  input_tokens: sql`sum(${ledger.inputTokens})::text`,
  output_tokens: sql`sum(${ledger.outputTokens})::text`,
};

function chosen(accountId: string, asked: UsageAsked): SQL | undefined {
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
