import type { RedisClient } from '@presign/limits';
import { type Pending, RefusedError } from '@presign/schema';
import { apiKeys, grants } from '@presign/schema/tables';
import { causeOf } from '@presign/service';
import type { Database, Transaction } from '@presign/service/database';
import { and, asc, eq, gt, isNotNull, lte, type SQL, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { recordChange } from '../events/audit-log.ts';
import type { Actor } from '../identity/caller.ts';
import { issuesWritten } from '../identity/standing.ts';
import { inTime } from '../middleware/in-time.ts';
import { PENDING } from '../middleware/route.ts';
import { applyChange, type ChangeId } from './pending-changes.ts';
import { lockSessions, revokeIn } from './revoke.ts';

type Deps = {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly now: () => number;
  readonly log: Logger;
};

/**
 * Revokes everything that an API key of the account has issued. A key may have issued millions of URLs, so they are revoked
 * in batches. The key's row says how far the batches have come, and a sweep goes on where this request ends.
 * @returns undefined once every gateway refuses all URLs, else `PENDING`
 * @throws RefusedError `not_found`, `database_unavailable` while nothing is stored
 */
export async function revokeIssuedBy(deps: Deps, by: Actor, apiKeyId: string): Promise<Pending | undefined> {
  const key = await inTime(deps.db.transaction((tx) => begin(deps, tx, by, apiKeyId)));
  const stopped = new AbortController();
  const all = async (): Promise<Pending | undefined> => {
    let isMore = true;
    let pending: Pending | undefined;
    while (isMore && !stopped.signal.aborted) {
      isMore = await deps.db.transaction((tx) => revokeBatch(deps, tx, eq(apiKeys.id, key.id), false));
      // Without Redis, the sweep applies what the next batches queue.
      pending ??= await applyChange(deps, changeOf(key.id));
    }
    // The sweep may have revoked a batch between two of this request.
    return pending ?? applyChange(deps, changeOf(key.id));
  };
  try {
    return await inTime(all());
  } catch (error) {
    deps.log.warn(causeOf(error), 'URLs of an API key have yet to be revoked');
    return PENDING;
  } finally {
    stopped.abort();
  }
}

/**
 * Stores that everything of a key is to be revoked. Requests that were issuing when the key ended are done by then, so the
 * batches find their URLs.
 * @throws RefusedError `not_found`
 */
async function begin(
  { now }: Deps,
  tx: Transaction,
  by: Actor,
  apiKeyId: string,
): Promise<{ readonly id: string }> {
  const own = and(eq(apiKeys.id, apiKeyId), eq(apiKeys.accountId, by.accountId));
  await issuesWritten(tx, own, now());
  const begun = tx.update(apiKeys).set({ revokingAfter: BEGINNING }).where(own);
  const [key] = await begun.returning({ id: apiKeys.id });
  if (!key) throw new RefusedError({ code: 'not_found', param: 'api_key', message: NO_KEY });
  // How many there are is not known yet.
  await recordChange(tx, by, { action: 'urls.revoked', target: { kind: 'api_key', id: key.id }, after: {} });
  return key;
}

const NO_KEY = 'api_key: this account has no API key with this id. It is the id, and not the key itself.';

/** No grant was issued before. */
const BEGINNING = new Date(0);

/** One change for all batches of a key, so that a request finds what a sweep has queued. */
const changeOf = (apiKeyId: string) => apiKeyId as ChangeId;

/**
 * Revokes a batch of some API key that a request has begun with and not finished. Any number of issuers may run it.
 * @returns whether there may be more
 */
export const goOnRevoking = (deps: Deps): Promise<boolean> =>
  deps.db.transaction((tx) => revokeBatch(deps, tx, undefined, true));

/** Grants that one transaction revokes, and a few more that were issued in the same second as the last. */
const BATCH = 1_000;

/**
 * Revokes the next grants of an API key, in the order of their issue, and remembers the place.
 * @returns whether the key may have more
 */
async function revokeBatch(
  { now: nowMs, log }: Deps,
  tx: Transaction,
  which: SQL | undefined,
  isSweep: boolean,
): Promise<boolean> {
  const [key] = await tx
    .select({ id: apiKeys.id, after: apiKeys.revokingAfter })
    .from(apiKeys)
    .where(and(which, isNotNull(apiKeys.revokingAfter)))
    .limit(1)
    .for('no key update', isSweep ? { skipLocked: true } : {});
  if (!key?.after) return false;
  const rest = and(eq(grants.apiKeyId, key.id), gt(grants.issuedAt, key.after));
  const [last] = await tx
    .select({ issuedAt: grants.issuedAt })
    .from(grants)
    .where(rest)
    .orderBy(asc(grants.issuedAt))
    .offset(BATCH - 1)
    .limit(1);
  const batch = sql`(${and(rest, last && lte(grants.issuedAt, last.issuedAt))})`;
  const now = new Date(nowMs());
  // A session ends with its last batch: it would end the grants of later batches before their turn.
  const ofOthers = sql`${grants.apiKeyId} is distinct from ${key.id}`;
  const others = last ? sql`(${ofOthers} or ${gt(grants.issuedAt, last.issuedAt)})` : ofOthers;
  const alone = await lockSessions(tx, batch, others);
  await revokeIn(tx, { grants: batch, sessions: alone }, now, changeOf(key.id));
  await tx
    .update(apiKeys)
    .set({ revokingAfter: last?.issuedAt ?? null })
    .where(eq(apiKeys.id, key.id));
  if (!last) log.info({ api_key: key.id }, 'revoked everything that an API key has issued');
  return last !== undefined;
}
