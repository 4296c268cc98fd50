import { idParams, RefusedError, type RevokeSessionsQuery, revokeSessionsQuery } from '@presign/schema';
import { grants, sessions } from '@presign/schema/tables';
import { and, eq, sql } from 'drizzle-orm';
import { lockSessions, revoke } from '../grants/revoke.ts';
import { revokeIssuedBy } from '../grants/revoke-issued.ts';
import { route } from '../middleware/route.ts';

/** `DELETE /v1/sessions/{id}`: revokes all grants of a session and closes it for new ones. */
export const revokeSession = route(
  {
    method: 'delete',
    path: '/v1/sessions/{id}',
    summary: 'Revoke a session and all its grants',
    description:
      'Every gateway refuses its URLs from the next call on and ends calls under way. No grant can join the session afterwards.',
    scope: 'presign',
    params: idParams,
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      revoke(deps, by, { kind: 'session', id: params.id.toLowerCase() }, async (tx) => {
        const own = and(eq(sessions.accountId, by.accountId), eq(sessions.id, params.id));
        // Waits for grants that are joining the session, so that they are revoked, too.
        const locked = tx.select({ id: sessions.id }).from(sessions).where(own).for('no key update');
        const [session] = await locked;
        if (!session) throw new RefusedError({ code: 'not_found' });
        return { grants: eq(grants.sessionId, session.id), sessions: eq(sessions.id, session.id) };
      }),
);

/**
 * `DELETE /v1/sessions?external_user=…` (or `external_session`, or `api_key`): revokes every grant that was issued with this id or by this
 * key. A session with only such grants is revoked as a whole. A session with other grants stays open for them.
 */
export const revokeSessions = route(
  {
    method: 'delete',
    path: '/v1/sessions',
    summary: 'Revoke all grants of one of your own users or sessions, or of an API key',
    description:
      'Give `external_user`, `external_session` or `api_key`. Every gateway refuses the URLs from the next call on and ends calls under way.',
    scope: 'presign',
    query: revokeSessionsQuery,
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, query }) => {
      if (query.api_key !== undefined) return revokeIssuedBy(deps, by, query.api_key);
      const { target, matching, others } = grantsWith(query);
      return revoke(deps, by, target, async (tx) => {
        const revoked = sql`(${grants.accountId} = ${by.accountId} and ${matching})`;
        return { grants: revoked, sessions: await lockSessions(tx, revoked, others) };
      });
    },
);

function grantsWith({ external_user: user, external_session: session }: RevokeSessionsQuery) {
  const [kind, column, value = ''] =
    user === undefined
      ? (['external_session', grants.externalSession, session] as const)
      : (['external_user', grants.externalUser, user] as const);
  return {
    target: { kind, id: value },
    matching: sql`${column} = ${value}`,
    others: sql`${column} is distinct from ${value}`,
  };
}
