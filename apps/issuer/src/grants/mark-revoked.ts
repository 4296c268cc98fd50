import { isAliveInSql } from '@presign/schema/grant-status';
import { grants, sessions, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, asc, eq, type SQL } from 'drizzle-orm';
import { announceRevoked } from '../events/announce-grants.ts';

/**
 * Marks those of these grants that are alive as revoked, and announces them. The others keep the end that they had. A session
 * ends its grants, so a transaction revokes the session after this.
 * @returns the ids of the grants that it has marked
 */
export async function markRevoked(
  tx: Transaction,
  which: SQL,
  at: SQL,
  reason: 'revoked' | 'overrun',
): Promise<readonly string[]> {
  // One order for all transactions, so that two revocations never deadlock.
  const alive = tx
    .select({ id: grants.id })
    .from(grants)
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(and(which, isAliveInSql(at)))
    .orderBy(asc(grants.id));
  const locked = tx.$with('locked').as(alive.for('no key update', { of: grants }));
  const revoked = await tx
    .with(locked)
    .update(grants)
    .set({ revokedAt: at })
    .from(locked)
    .where(eq(grants.id, locked.id))
    .returning({ id: grants.id, accountId: grants.accountId });
  await announceRevoked(tx, revoked, reason);
  return revoked.map(({ id }) => id);
}
