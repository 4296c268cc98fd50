import { type Refusal, RefusedError } from '@presign/schema';
import { accounts, apiKeys } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';

/** `DELETE /v1/api-keys/{id}`: refused from the next request on. One that is revoked already stays so. */
export const revokeApiKey = route(
  {
    method: 'delete',
    path: '/v1/api-keys/{id}',
    summary: 'Revoke an API key',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    errors: ['not_found', 'last_admin_key'],
  },
  (deps) =>
    async ({ apiKey, params }) =>
      inTime(endApiKey(deps, apiKey.accountId, params.id)),
);

/**
 * Revokes a key of the account.
 * @throws RefusedError `not_found`; `last_admin_key` for the last one with which other keys could be made
 */
export async function endApiKey(
  { db, now }: Pick<IssuerDeps, 'db' | 'now'>,
  accountId: string,
  id: string,
): Promise<undefined> {
  await db.transaction(async (tx) => {
    // Two keys that are revoked at once must not each count on the other.
    await tx.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update');
    const keys = await tx.select().from(apiKeys).where(eq(apiKeys.accountId, accountId));
    const key = keys.find((each) => each.id === id.toLowerCase());
    if (!key) throw new RefusedError({ code: 'not_found' });
    if (key.revokedAt) return;
    const admins = keys.filter((each) => isValidAdmin(each, now()));
    if (admins.length === 1 && admins[0] === key) throw new RefusedError(LAST);
    const own = and(eq(apiKeys.accountId, accountId), eq(apiKeys.id, id));
    await tx
      .update(apiKeys)
      .set({ revokedAt: new Date(now()) })
      .where(own);
  });
  return undefined;
}

const isValidAdmin = (key: typeof apiKeys.$inferSelect, nowMs: number): boolean =>
  key.scopes.includes('admin') &&
  key.revokedAt === null &&
  (key.expiresAt === null || key.expiresAt.getTime() > nowMs);

const LAST: Refusal = {
  code: 'last_admin_key',
  message: 'This is the last valid admin key of the account. Create another one first.',
};
