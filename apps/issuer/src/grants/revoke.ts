import { keysEndMs, type RedisClient, revokeGrant as raiseTombstone } from '@presign/limits';
import { RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { budgets, grants } from '@presign/schema/tables';
import { and, asc, eq, gt, isNull, type SQL, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { announceRevoked } from '../webhooks/announce-grants.ts';

/**
 * Revokes grants: first in Postgres, so that none of them is loaded again, and then in Redis, so that every gateway
 * refuses them from its next call on. Grants that were revoked earlier get their tombstone again, so that a caller can
 * repeat a request that failed in between.
 * @param which locks the sessions that new grants could join, and returns the condition that selects the grants
 * @returns undefined, the answer of a route without a body, once every tombstone stands
 * @throws RefusedError `limits_unavailable` when Redis does not answer: the grants are revoked, but calls may still pass
 */
export async function revoke(
  deps: IssuerDeps,
  which: (tx: Transaction, now: Date) => Promise<SQL>,
): Promise<undefined> {
  const now = new Date(deps.now());
  const marked = deps.db.transaction(async (tx) => mark(tx, await which(tx, now), now));
  await raiseTombstones(deps.redis, await inTime(marked)).catch((cause: unknown) => {
    const message =
      'The revocation is stored, but Redis does not answer, so gateways may still let calls pass. Repeat this request.';
    throw new RefusedError({ code: 'limits_unavailable', message, retryAfterSeconds: 1 }, { cause });
  });
  return undefined;
}

/** `DELETE /v1/grants/{id}`: revokes one issued URL; the id of a bundle includes the URLs of its servers. */
export const revokeGrant = route(
  {
    method: 'delete',
    path: '/v1/grants/{id}',
    summary: 'Revoke one issued URL, or a bundle with its servers',
    scope: 'presign',
    params: z.object({ id: z.guid() }),
    errors: ['not_found', 'limits_unavailable'],
  },
  (deps) =>
    async ({ apiKey, params }) =>
      revoke(deps, async (tx) => {
        const own = and(eq(grants.accountId, apiKey.accountId), eq(grants.id, params.id));
        const [found] = await tx.select({ id: grants.id }).from(grants).where(own);
        if (!found) throw new RefusedError({ code: 'not_found' });
        return sql`(${grants.id} = ${found.id} or ${grants.bundleId} = ${found.id})`;
      }),
);

type Revoked = { readonly id: string; readonly partition: number; readonly expiresAt: Date };

/**
 * Marks the grants that have not expired as revoked.
 * @returns every grant that Redis may still have keys of, also expired ones: a call that was admitted before the
 *   expiry is cut, too
 */
async function mark(tx: Transaction, which: SQL, now: Date): Promise<Revoked[]> {
  // One order for all transactions, so that two revocations never deadlock.
  const toMark = tx
    .select({ id: grants.id })
    .from(grants)
    .where(and(which, isNull(grants.revokedAt), gt(grants.expiresAt, now)));
  const locked = tx.$with('locked').as(toMark.orderBy(asc(grants.id)).for('no key update'));
  const revoked = await tx
    .with(locked)
    .update(grants)
    .set({ revokedAt: now })
    .from(locked)
    .where(eq(grants.id, locked.id))
    .returning({ id: grants.id, accountId: grants.accountId });
  await announceRevoked(tx, revoked, 'revoked');
  const keysEnded = new Date(now.getTime() - keysEndMs(0));
  return tx
    .select({ id: grants.id, partition: budgets.partition, expiresAt: grants.expiresAt })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .where(and(which, gt(grants.expiresAt, keysEnded)));
}

/** Sends a batch at once, in one pipeline for each server, and waits for all its answers. */
async function raiseTombstones(redis: RedisClient, revoked: readonly Revoked[]): Promise<void> {
  for (let i = 0; i < revoked.length; i += BATCH) {
    const batch = revoked.slice(i, i + BATCH);
    await Promise.all(
      batch.map(({ expiresAt, ...grant }) =>
        raiseTombstone(redis, { ...grant, expiresAtMs: expiresAt.getTime() }),
      ),
    );
  }
}

/** Few enough that the slowest Redis answers them within a command's timeout. */
const BATCH = 500;
