import { type AuditTarget, type Pending, RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { grants, sessions } from '@presign/schema/tables';
import { and, asc, eq, gt, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import { z } from 'zod';
import { recordChange } from '../audit/audit-log.ts';
import type { Actor, IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { announceRevoked } from '../webhooks/announce-grants.ts';
import { applyChange, type ChangeId, newChangeId, queueTombstones } from './pending-changes.ts';

/**
 * Revokes grants: first in Postgres, so that none of them is loaded again, and then in Redis, so that every gateway
 * refuses them from its next call on. Grants that were revoked earlier get their tombstone again.
 * @param target what the caller names, for the audit log
 * @param which locks the sessions that new grants could join, and returns the condition that selects the grants
 * @returns undefined, the answer of a route without a body, once every tombstone stands; else `PENDING`
 */
export async function revoke(
  deps: IssuerDeps,
  by: Actor,
  target: { readonly kind: AuditTarget; readonly id: string },
  which: (tx: Transaction, now: Date) => Promise<SQL>,
): Promise<Pending | undefined> {
  const now = new Date(deps.now());
  const stored = deps.db.transaction(async (tx) => {
    const { changeId, revoked } = await mark(tx, await which(tx, now), now);
    await recordChange(tx, by, { action: 'urls.revoked', target, after: { urls: revoked } });
    return changeId;
  });
  return applyChange(deps, await inTime(stored));
}

/** `DELETE /v1/grants/{id}`: revokes one issued URL; the id of a bundle includes the URLs of its servers. */
export const revokeGrant = route(
  {
    method: 'delete',
    path: '/v1/grants/{id}',
    summary: 'Revoke one issued URL, or a bundle with its servers',
    scope: 'presign',
    params: z.object({ id: z.guid() }),
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      revoke(deps, by, { kind: 'grant', id: params.id.toLowerCase() }, async (tx) => {
        const own = and(eq(grants.accountId, by.accountId), eq(grants.id, params.id));
        const [found] = await tx.select({ id: grants.id }).from(grants).where(own);
        if (!found) throw new RefusedError({ code: 'not_found' });
        return sql`(${grants.id} = ${found.id} or ${grants.bundleId} = ${found.id})`;
      }),
);

/**
 * Marks the grants that have not expired as revoked, and queues the tombstones of all.
 * @returns the change to apply, and how many it has marked
 */
export async function mark(
  tx: Transaction,
  which: SQL,
  now: Date,
  changeId = newChangeId(),
): Promise<{ changeId: ChangeId; revoked: number }> {
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
  return { changeId: await queueTombstones(tx, which, now, changeId), revoked: revoked.length };
}

/** Revokes the sessions of these grants that have no others. */
export async function closeSessions(tx: Transaction, revoked: SQL, others: SQL, now: Date): Promise<void> {
  const affected = inArray(sessions.id, tx.select({ id: grants.sessionId }).from(grants).where(revoked));
  // Waits for grants that are joining these sessions; the statements after this one see them.
  await tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(affected)
    .orderBy(asc(sessions.id))
    .for('no key update');
  const shared = sql`exists (select from ${grants} where ${grants.sessionId} = ${sessions.id} and ${others})`;
  await tx
    .update(sessions)
    .set({ revokedAt: now })
    .where(and(affected, isNull(sessions.revokedAt), sql`not ${shared}`));
}
