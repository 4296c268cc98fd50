import { RefusedError } from '@presign/schema';
import { grants } from '@presign/schema/tables';
import { and, eq, sql } from 'drizzle-orm';
import { z } from 'zod';
import { route } from '../route.ts';
import { revoke } from './revoke.ts';

/** `DELETE /v1/grants/{id}`: revokes one issued URL; with a bundle, the URLs of its servers. */
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
