import type { RedisClient } from '@presign/limits';
import { RefusedError, rateLimited } from '@presign/schema';
import { isAliveInSql, timeInSql } from '@presign/schema/grant-status';
import { accounts, grants, sessions, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, sql } from 'drizzle-orm';
import type { ApiKey } from '../identity/caller.ts';
import { countInTime } from '../middleware/count-in-time.ts';

/**
 * Refuses a URL or a bundle above the limits of its account, and counts it by the minute. While Redis does not answer, it is not
 * counted, as requests of an API key are not.
 * @throws RefusedError `account_limit`, `rate_limited`
 */
export async function obeyAccount(
  { redis }: { readonly redis: RedisClient },
  { accountId, limits }: ApiKey,
  costLimit: number | undefined,
): Promise<void> {
  const { cost_limit: most = null, urls_per_minute: perMinute = null } = limits ?? {};
  if (most !== null && (costLimit ?? Number.POSITIVE_INFINITY) > most) throw costAbove(most);
  if (perMinute === null) return;
  const counted = await countInTime(redis, accountId, `urls:${accountId}`, perMinute);
  if (counted && counted.waitMs > 0) throw new RefusedError(rateLimited(counted, 'This account'));
}

/** The refusal of a `cost_limit` above that of the account. */
export const costAbove = (most: number): RefusedError =>
  accountLimit('cost_limit', `this account allows at most ${most}, and no URL without it`);

/** The refusal of a request above a limit of its account. */
export function accountLimit(param: string, problem: string): RefusedError {
  return new RefusedError({ code: 'account_limit', param, message: `${param}: ${problem}.` });
}

/** Whether a new session must be counted before it is written. */
export const countsSessions = ({ limits }: ApiKey): boolean => (limits?.sessions ?? null) !== null;

/**
 * Refuses a new session above the limit of its account, whose row it locks: of two sessions at once, the second counts the
 * first. A session that exists may be joined.
 * @throws RefusedError `account_limit`
 */
export async function obeySessions(
  tx: Transaction,
  { accountId, limits }: ApiKey,
  sessionId: string | undefined,
  now: Date,
): Promise<void> {
  const most = limits?.sessions ?? null;
  if (most === null) return;
  await tx.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, accountId)).for('no key update');
  if (sessionId !== undefined && (await tx.$count(sessions, eq(sessions.id, sessionId))) > 0) return;
  const some = tx
    .selectDistinct({ id: grants.sessionId })
    .from(grants)
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(and(eq(grants.accountId, accountId), isAliveInSql(timeInSql(now.getTime()))))
    .limit(most);
  const [{ live = 0 } = {}] = await tx.select({ live: sql<number>`count(*)::int` }).from(some.as('live'));
  if (live >= most)
    throw accountLimit('session_id', `this account allows ${most} live sessions, and has them`);
}
