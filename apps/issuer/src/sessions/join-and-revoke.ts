import { RefusedError, type RevokeSessionsQuery, revokeSessionsQuery } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { grants, sessions } from '@presign/schema/tables';
import { and, asc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import { z } from 'zod';
import { revoke } from '../grants/revoke.ts';
import { route } from '../route.ts';

/**
 * Creates the session that a caller asks for, or joins it when it exists and belongs to the same account. Its row
 * stays locked until the transaction ends: a revocation waits for the new grant, and then revokes it, too.
 * @throws RefusedError `session_conflict` for a session of another account, or a revoked one
 */
export async function joinSession(
  tx: Transaction,
  accountId: string,
  id: string,
  createdAt: Date,
): Promise<void> {
  const row = { id, accountId, createdAt };
  const created = await tx.insert(sessions).values(row).onConflictDoNothing().returning({ id: sessions.id });
  if (created.length > 0) return;
  const [session] = await tx.select().from(sessions).where(eq(sessions.id, id)).for('share');
  if (session?.accountId !== accountId) throw conflict('session_id: this session cannot be joined.');
  if (session.revokedAt) throw conflict('session_id: this session has been revoked.');
}

const conflict = (message: string) =>
  new RefusedError({ code: 'session_conflict', param: 'session_id', message });

/** `DELETE /v1/sessions/{id}`: revokes all grants of a session and closes it for new ones. */
export const revokeSession = route(
  {
    method: 'delete',
    path: '/v1/sessions/{id}',
    summary: 'Revoke a session and all its grants',
    description:
      'Every gateway refuses its URLs from the next call on and ends calls under way. No grant can join the session afterwards.',
    scope: 'presign',
    params: z.object({ id: z.guid() }),
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params }) =>
      revoke(deps, async (tx, now) => {
        // Waits for grants that are joining the session, so that they are revoked, too.
        const [session] = await tx
          .update(sessions)
          .set({ revokedAt: sql`coalesce(${sessions.revokedAt}, ${now.toISOString()}::timestamptz)` })
          .where(and(eq(sessions.accountId, apiKey.accountId), eq(sessions.id, params.id)))
          .returning({ id: sessions.id });
        if (!session) throw new RefusedError({ code: 'not_found' });
        return eq(grants.sessionId, session.id);
      }),
);

/**
 * `DELETE /v1/sessions?external_user=…` (or `external_session`): revokes every grant that was issued with this id.
 * A session that has only such grants is revoked as a whole; one with other grants stays open for them.
 */
export const revokeSessions = route(
  {
    method: 'delete',
    path: '/v1/sessions',
    summary: 'Revoke all grants of one of your own users or sessions',
    description:
      'Give `external_user` or `external_session`. Every gateway refuses the URLs from the next call on and ends calls under way.',
    scope: 'presign',
    query: revokeSessionsQuery,
    pending: true,
  },
  (deps) =>
    async ({ apiKey, query }) =>
      revoke(deps, async (tx, now) => {
        const { matching, others } = grantsWith(query);
        const revoked = sql`(${grants.accountId} = ${apiKey.accountId} and ${matching})`;
        await closeSessions(tx, revoked, others, now);
        return revoked;
      }),
);

function grantsWith({ external_user: user, external_session: session }: RevokeSessionsQuery) {
  const [column, value] =
    user === undefined ? [grants.externalSession, session] : [grants.externalUser, user];
  return { matching: sql`${column} = ${value}`, others: sql`${column} is distinct from ${value}` };
}

/** Revokes the sessions that have only such grants. */
async function closeSessions(tx: Transaction, revoked: SQL, others: SQL, now: Date): Promise<void> {
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
