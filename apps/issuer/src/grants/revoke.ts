import { keysEndMs, type RedisClient, revokeGrant } from '@presign/limits';
import { RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { budgets, grants } from '@presign/schema/tables';
import { and, asc, eq, gt, isNull, type SQL } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { noteRevoked } from '../webhooks/announce-grants.ts';

/**
 * Revokes grants: in Postgres, so that none comes back, and then in Redis, so that every gateway refuses them
 * from its next call on. What was revoked before gets its tombstone again, so a request that ended in between
 * may be repeated.
 * @param which locks what new grants could join, and names the grants as a condition
 * @returns once every tombstone stands: what a route without an answer gives back
 * @throws RefusedError `limits_unavailable` when Redis cannot be told: they are revoked, but calls may still pass
 */
export async function revoke(
  deps: IssuerDeps,
  which: (tx: Transaction, now: Date) => Promise<SQL>,
): Promise<undefined> {
  const now = new Date(deps.now());
  const marked = deps.db.transaction(async (tx) => mark(tx, await which(tx, now), now));
  await raiseTombstones(deps.redis, await inTime(marked)).catch((cause: unknown) => {
    const message =
      'This is revoked, but Redis does not answer, so the gateways do not know of it yet. Repeat this request.';
    throw new RefusedError({ code: 'limits_unavailable', message, retryAfterSeconds: 1 }, { cause });
  });
  return undefined;
}

type Revoked = { readonly id: string; readonly partition: number; readonly expiresAt: Date };

/**
 * Marks grants as revoked that have not expired; returns all that a gateway may still hold something of: a call that
 * was let through before its grant expired is cut, too.
 */
async function mark(tx: Transaction, which: SQL, now: Date): Promise<Revoked[]> {
  // In one order for all, so that two revocations never wait for each other's grants.
  const open = tx
    .select({ id: grants.id })
    .from(grants)
    .where(and(which, isNull(grants.revokedAt), gt(grants.expiresAt, now)));
  const locked = tx.$with('locked').as(open.orderBy(asc(grants.id)).for('no key update'));
  const revoked = await tx
    .with(locked)
    .update(grants)
    .set({ revokedAt: now })
    .from(locked)
    .where(eq(grants.id, locked.id))
    .returning({ id: grants.id, accountId: grants.accountId });
  await noteRevoked(tx, revoked, 'revoked');
  const keysEnded = new Date(now.getTime() - keysEndMs(0));
  return tx
    .select({ id: grants.id, partition: budgets.partition, expiresAt: grants.expiresAt })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .where(and(which, gt(grants.expiresAt, keysEnded)));
}

/** Each batch goes out at once, in one pipeline for each server; it stands when all of it is answered. */
async function raiseTombstones(redis: RedisClient, revoked: readonly Revoked[]): Promise<void> {
  for (let i = 0; i < revoked.length; i += BATCH) {
    const batch = revoked.slice(i, i + BATCH);
    await Promise.all(
      batch.map(({ expiresAt, ...grant }) =>
        revokeGrant(redis, { ...grant, expiresAtMs: expiresAt.getTime() }),
      ),
    );
  }
}

/** Few enough that the slowest Redis answers them within the time that a command has. */
const BATCH = 500;
