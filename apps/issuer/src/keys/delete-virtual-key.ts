import { withdrawCredential } from '@presign/limits';
import { RefusedError, virtualKeyParams } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { credentials, virtualKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { inEveryPartition } from './in-every-partition.ts';
import { ownVirtualKey } from './tell-virtual-key.ts';

/**
 * `DELETE /v1/virtual-keys/{id}`: once answered, every gateway refuses all URLs issued with it, and calls under way
 * are cut within a second. Its record stays, without the key.
 */
export const deleteVirtualKey = route(
  {
    method: 'delete',
    path: '/v1/virtual-keys/{id}',
    summary: 'Delete a virtual key: all URLs issued with it are refused',
    scope: 'admin',
    params: virtualKeyParams,
    errors: ['not_found', 'limits_unavailable'],
  },
  (deps) =>
    async ({ apiKey, params }) =>
      endVirtualKey(deps, apiKey.accountId, params.id),
);

type Deps = Pick<IssuerDeps, 'db' | 'redis' | 'now'>;

/**
 * Revokes a virtual key and erases what was sealed: in Postgres, and then wherever Redis has or may get a copy. One
 * that is revoked already has its gateways told again.
 * @throws RefusedError `not_found`; `limits_unavailable` when it is revoked but not all gateways may know of it:
 *   repeated, it finishes the job
 */
export async function endVirtualKey(deps: Deps, accountId: string, id: string): Promise<undefined> {
  const now = new Date(deps.now());
  const credentialId = await inTime(deps.db.transaction((tx) => erase(tx, accountId, id, now)));
  await inEveryPartition((partitions) => withdrawCredential(deps.redis, credentialId, partitions));
  return undefined;
}

async function erase(tx: Transaction, accountId: string, id: string, now: Date): Promise<string> {
  const [key] = await tx.select().from(virtualKeys).where(ownVirtualKey(accountId, id)).for('no key update');
  if (!key) throw new RefusedError({ code: 'not_found' });
  const { credentialId } = key;
  if (key.revokedAt) return credentialId;
  await tx.update(virtualKeys).set({ revokedAt: now }).where(eq(virtualKeys.id, id));
  await tx.update(credentials).set({ revokedAt: now, sealed: '' }).where(eq(credentials.id, credentialId));
  return credentialId;
}
