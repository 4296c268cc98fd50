import { and, not, type SQL, sql } from 'drizzle-orm';
import type { SessionGrant } from '../api/session.ts';
import { budgets, grants, sessions, virtualKeys } from './tables.ts';

/** A grant's status, as the API shows it. */
export type StatusOfGrant = SessionGrant['status'];

type Revocable = { readonly revokedAt: Date | null };

/** Everything that a grant's status depends on. */
export type GrantFacts = {
  readonly grant: Revocable & { readonly expiresAt: Date };
  readonly session: Revocable;
  readonly virtualKey: Revocable | null;
  /** The grant's own limits. The budget of a virtual key is shared, and does not exhaust a grant. */
  readonly budget: { readonly maxUses: number | null; readonly costLimitMicrousd: number | null };
  /** Uses and microdollars, from the ledger or from Redis. */
  readonly figures: { readonly used: number; readonly spentMicrousd: number };
};

/**
 * The status of a grant. A grant ends with the first of its expiry and the revocations of itself, its session and its virtual key. It
 * keeps the status that this end gave it. `statusInSql` is the same rule for queries: `test/issuer/grant-status.test.ts` compares the
 * two on one table of cases.
 */
export function statusOfGrant(facts: GrantFacts, nowMs: number): StatusOfGrant {
  const { grant, session, virtualKey, budget, figures } = facts;
  const endsMs = grant.expiresAt.getTime();
  const revocations = [grant.revokedAt, session.revokedAt, virtualKey?.revokedAt];
  if (revocations.some((at) => at && at.getTime() < endsMs)) return 'revoked';
  if (endsMs <= nowMs) return 'expired';
  const isExhausted =
    reaches(figures.used, budget.maxUses) ||
    (budget.costLimitMicrousd !== 0 && reaches(figures.spentMicrousd, budget.costLimitMicrousd));
  return isExhausted ? 'exhausted' : 'active';
}

const reaches = (figure: number, limit: number | null) => limit !== null && figure >= limit;

/** When a grant ends, or has ended, in the queries of `statusInSql`. `least` ignores nulls (PostgreSQL manual, 9.18.4). */
export const END_IN_SQL = sql`least(
  ${grants.expiresAt}, ${grants.revokedAt}, ${sessions.revokedAt}, ${virtualKeys.revokedAt})`;

const IS_REVOKED = sql`${END_IN_SQL} < ${grants.expiresAt}`;

/** A cost limit of 0 allows free calls without end. */
const IS_EXHAUSTED = sql`(coalesce(${budgets.used} >= ${budgets.maxUses}, false)
  or coalesce(${budgets.settledMicrousd} >= nullif(${budgets.costLimitMicrousd}, 0), false))`;

const isExpired = (now: SQL) => sql`${grants.expiresAt} <= ${now}`;

/**
 * The status of a grant by the ledger's figures, in a query that joins `grants`, `budgets`, `sessions` and, as a left
 * join, `virtualKeys`.
 */
export const statusInSql = (now: SQL): SQL<StatusOfGrant> => sql<StatusOfGrant>`(case
  when ${IS_REVOKED} then 'revoked'
  when ${isExpired(now)} then 'expired'
  when ${IS_EXHAUSTED} then 'exhausted'
  else 'active' end)`;

/** Whether the grant has not ended, in the same queries: conditions instead of a case, so that Postgres can use indexes. */
export const isAliveInSql = (now: SQL): SQL | undefined => and(not(IS_REVOKED), not(isExpired(now)));

/** Whether the status is `active`, in the same queries. */
export const isActiveInSql = (now: SQL): SQL | undefined => and(isAliveInSql(now), not(IS_EXHAUSTED));

/** A time in SQL. */
export const timeInSql = (ms: number): SQL => sql`${new Date(ms).toISOString()}::timestamptz`;
