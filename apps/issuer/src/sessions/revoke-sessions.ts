import { type RevokeSessionsQuery, revokeSessionsQuery } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { grants, sessions } from '@presign/schema/tables';
import { and, asc, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import { revoke } from '../grants/revoke.ts';
import { route } from '../route.ts';

/**
 * `DELETE /v1/sessions?external_user=…` (or `external_session`): revokes every grant that was issued with it.
 * A session in which there are no others is revoked as a whole; one that others are in goes on for them.
 */
export const revokeSessions = route(
  {
    method: 'delete',
    path: '/v1/sessions',
    summary: 'Revoke all grants of one of your own users or sessions',
    description:
      'Give `external_user` or `external_session`. Every gateway refuses their URLs from the next call on, and ends what is under way.',
    scope: 'presign',
    query: revokeSessionsQuery,
    errors: ['limits_unavailable'],
  },
  (deps) =>
    async ({ apiKey, query }) =>
      revoke(deps, async (tx, now) => {
        const { theirs, others } = grantsOf(query);
        const revoked = sql`(${grants.accountId} = ${apiKey.accountId} and ${theirs})`;
        await closeSessions(tx, revoked, others, now);
        return revoked;
      }),
);

function grantsOf({ external_user: user, external_session: session }: RevokeSessionsQuery) {
  const [column, value] =
    user === undefined ? [grants.externalSession, session] : [grants.externalUser, user];
  return { theirs: sql`${column} = ${value}`, others: sql`${column} is distinct from ${value}` };
}

/** Revokes the sessions of these grants that have no others. */
async function closeSessions(tx: Transaction, revoked: SQL, others: SQL, now: Date): Promise<void> {
  const theirs = inArray(sessions.id, tx.select({ id: grants.sessionId }).from(grants).where(revoked));
  // Waits for grants that are joining them just now, which the statements after this one see.
  await tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(theirs)
    .orderBy(asc(sessions.id))
    .for('no key update');
  const shared = sql`exists (select from ${grants} where ${grants.sessionId} = ${sessions.id} and ${others})`;
  await tx
    .update(sessions)
    .set({ revokedAt: now })
    .where(and(theirs, isNull(sessions.revokedAt), sql`not ${shared}`));
}
