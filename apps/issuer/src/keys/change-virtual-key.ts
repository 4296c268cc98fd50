import { type EncryptionKeys, SealError, seal, unseal } from '@presign/crypto';
import { type CredentialVersion, replaceCredential } from '@presign/limits';
import { RefusedError, rotationRequest, virtualKeyAnswer, virtualKeyParams } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { credentialContext, credentials, virtualKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { inEveryPartition } from './in-every-partition.ts';
import { ownVirtualKey, readVirtualKey, tellVirtualKey } from './tell-virtual-key.ts';

/** `POST /v1/virtual-keys/{id}/rotate`: once answered, every call on every gateway is made with the new key. */
export const rotateVirtualKey = route(
  {
    method: 'post',
    path: '/v1/virtual-keys/{id}/rotate',
    summary: "Replace the provider's key, for URLs that are issued already, too",
    scope: 'admin',
    params: virtualKeyParams,
    body: rotationRequest,
    answer: virtualKeyAnswer,
    errors: ['not_found', 'virtual_key_revoked', 'limits_unavailable'],
  },
  (deps) =>
    async ({ apiKey: { accountId }, params, body }) => {
      await replaceKey(deps, accountId, params.id, body.key);
      return tellVirtualKey(deps.redis, await inTime(readVirtualKey(deps.db, accountId, params.id)));
    },
);

type Deps = Pick<IssuerDeps, 'db' | 'redis' | 'encryptionKeys'>;

/**
 * Puts another key in a virtual key's place: in Postgres, and then wherever Redis has or may get a copy. The same
 * key again is no rotation, but tells the gateways once more.
 * @throws RefusedError `not_found`, `virtual_key_revoked`; `limits_unavailable` when the key is stored but not all
 *   gateways may know of it: repeated, it finishes the job
 */
export async function replaceKey(deps: Deps, accountId: string, id: string, key: string): Promise<void> {
  const stored = deps.db.transaction((tx) => storeKey(tx, deps, accountId, id, key));
  const credential = await inTime(stored);
  await inEveryPartition((partitions) => replaceCredential(deps.redis, credential, partitions));
}

async function storeKey(
  tx: Transaction,
  { encryptionKeys }: Deps,
  accountId: string,
  id: string,
  key: string,
): Promise<CredentialVersion> {
  const [row] = await tx
    .select({ credential: credentials })
    .from(virtualKeys)
    .innerJoin(credentials, eq(credentials.id, virtualKeys.credentialId))
    .where(ownVirtualKey(accountId, id))
    .for('no key update', { of: credentials });
  if (!row) throw new RefusedError({ code: 'not_found' });
  const { credential } = row;
  if (credential.revokedAt) throw new RefusedError({ code: 'virtual_key_revoked' });
  const context = credentialContext(accountId, credential.id);
  if (opened(encryptionKeys, credential.sealed, context) === key) return credential;
  const anew = { sealed: seal(encryptionKeys, key, context), version: credential.version + 1 };
  await tx.update(credentials).set(anew).where(eq(credentials.id, credential.id));
  return { id: credential.id, ...anew };
}

/** Undefined: the key that it was sealed with is gone, which to rotate is the remedy for. */
function opened(keys: EncryptionKeys, sealed: string, context: string): string | undefined {
  try {
    return unseal(keys, sealed, context);
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}
