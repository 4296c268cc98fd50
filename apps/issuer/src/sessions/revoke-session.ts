import { RefusedError } from '@presign/schema';
import { grants, sessions } from '@presign/schema/tables';
import { and, eq, sql } from 'drizzle-orm';
import { z } from 'zod';
import { revoke } from '../grants/revoke.ts';
import { route } from '../route.ts';

/** `DELETE /v1/sessions/{id}`: revokes all its grants; no further one can join it. */
export const revokeSession = route(
  {
    method: 'delete',
    path: '/v1/sessions/{id}',
    summary: 'Revoke a session with all its grants',
    description:
      'Every gateway refuses its URLs from the next call on, and ends what is under way. No further grant can join the session.',
    scope: 'presign',
    params: z.object({ id: z.guid() }),
    errors: ['not_found', 'limits_unavailable'],
  },
  (deps) =>
    async ({ apiKey, params }) =>
      revoke(deps, async (tx, now) => {
        // Waits for grants that are joining it just now: they are seen, and revoked with it.
        const [session] = await tx
          .update(sessions)
          .set({ revokedAt: sql`coalesce(${sessions.revokedAt}, ${now.toISOString()}::timestamptz)` })
          .where(and(eq(sessions.accountId, apiKey.accountId), eq(sessions.id, params.id)))
          .returning({ id: sessions.id });
        if (!session) throw new RefusedError({ code: 'not_found' });
        return eq(grants.sessionId, session.id);
      }),
);
