import { type AuditTarget, idParams, type Pending, RefusedError } from '@presign/schema';
import { timeInSql } from '@presign/schema/grant-status';
import { grants, sessions } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, asc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import { recordChange } from '../events/audit-log.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { markRevoked } from './mark-revoked.ts';
import { applyChange, type ChangeId, newChangeId, queueTombstones } from './pending-changes.ts';

type Needs = Pick<RouteDeps, 'db' | 'redis' | 'now' | 'log'>;

/**
 * Revokes grants: first in Postgres, so that none of them is loaded again, and then in Redis, so that every gateway
 * refuses them from its next call on. Grants that were revoked earlier get their tombstone again.
 * @param target what the caller names, for the audit log
 * @param which locks the sessions that new grants could join, and says which grants and which sessions to revoke
 * @returns undefined, the answer of a route without a body, once every tombstone stands; else `PENDING`
 */
export async function revoke(
  deps: Needs,
  by: Actor,
  target: { readonly kind: AuditTarget; readonly id: string },
  which: (tx: Transaction) => Promise<Revoked>,
): Promise<Pending | undefined> {
  const now = new Date(deps.now());
  const stored = deps.db.transaction(async (tx) => {
    const { changeId, revoked } = await revokeIn(tx, await which(tx), now);
    await recordChange(tx, by, { action: 'urls.revoked', target, after: { urls: revoked } });
    return changeId;
  });
  return applyChange(deps, await inTime(stored));
}

/** The grants that one transaction revokes, and the sessions, which it has locked. */
type Revoked = { readonly grants: SQL; readonly sessions?: SQL };

/** `DELETE /v1/grants/{id}`: revokes one issued URL; the id of a bundle includes the URLs of its servers. */
export const revokeGrant = route(
  {
    method: 'delete',
    path: '/v1/grants/{id}',
    summary: 'Revoke one issued URL, or a bundle with its servers',
    scope: 'presign',
    params: idParams,
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      revoke(deps, by, { kind: 'grant', id: params.id.toLowerCase() }, async (tx) => {
        const own = and(eq(grants.accountId, by.accountId), eq(grants.id, params.id));
        const [found] = await tx.select({ id: grants.id }).from(grants).where(own);
        if (!found) throw new RefusedError({ code: 'not_found' });
        return { grants: sql`(${grants.id} = ${found.id} or ${grants.bundleId} = ${found.id})` };
      }),
);

/**
 * Revokes those of the grants that are alive, and the sessions, and queues the tombstones of all the grants.
 * @returns the change to apply, and how many grants it has revoked
 */
export async function revokeIn(
  tx: Transaction,
  which: Revoked,
  now: Date,
  changeId = newChangeId(),
): Promise<{ changeId: ChangeId; revoked: number }> {
  const revoked = await markRevoked(tx, which.grants, timeInSql(now.getTime()), 'revoked');
  if (which.sessions) {
    const live = and(which.sessions, isNull(sessions.revokedAt));
    await tx.update(sessions).set({ revokedAt: now }).where(live);
  }
  return { changeId: await queueTombstones(tx, which.grants, now, changeId), revoked: revoked.length };
}

/** Locks the sessions of these grants. Returns the condition that selects those of them that have no others. */
export async function lockSessions(tx: Transaction, revoked: SQL, others: SQL): Promise<SQL> {
  const affected = inArray(sessions.id, tx.select({ id: grants.sessionId }).from(grants).where(revoked));
  // Waits for grants that are joining these sessions; the statements after this one see them.
  const locked = await tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(affected)
    .orderBy(asc(sessions.id))
    .for('no key update');
  const shared = sql`exists (select from ${grants} where ${grants.sessionId} = ${sessions.id} and ${others})`;
  // By their ids: a session that is created meanwhile is not locked, so its grant may come after those that are revoked.
  const ids = JSON.stringify(locked.map(({ id }) => id));
  return sql`${sessions.id} in (select each::uuid from json_array_elements_text(${ids}::json) as each) and not ${shared}`;
}
