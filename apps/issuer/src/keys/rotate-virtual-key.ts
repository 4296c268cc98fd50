import { type EncryptionKeys, SealError, seal, unseal } from '@presign/crypto';
import {
  type Pending,
  RefusedError,
  rotationRequest,
  virtualKeyAnswer,
  virtualKeyParams,
} from '@presign/schema';
import { credentialContext, credentials, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import type { Logger } from 'pino';
import { recordChange } from '../events/audit-log.ts';
import { checkKey } from '../grants/check-callable.ts';
import { applyChange, queueCredential } from '../grants/pending-changes.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { describeVirtualKey, isOwnVirtualKey, loadVirtualKey } from './virtual-keys.ts';

/** `POST /v1/virtual-keys/{id}/rotate`: once answered, every call on every gateway uses the new key. */
export const rotateVirtualKey = route(
  {
    method: 'post',
    path: '/v1/virtual-keys/{id}/rotate',
    summary: "Replace the provider's key of a virtual key",
    description: 'URLs that are already issued use the new key from their next call on.',
    scope: 'admin',
    params: virtualKeyParams,
    body: rotationRequest,
    answer: virtualKeyAnswer,
    pending: true,
    errors: ['not_found', 'virtual_key_revoked'],
  },
  (deps) =>
    async ({ by, params, body }) => {
      const pending = await replaceKey(deps, by, params.id, body.key);
      if (pending) return pending;
      return describeVirtualKey(deps.redis, await inTime(loadVirtualKey(deps.db, by.accountId, params.id)));
    },
);

/**
 * Replaces the key of a virtual key: first in Postgres, and then in every Redis partition, because a copy may be in any
 * of them. Repeating it with the same key creates no new version, but writes the copies again.
 * @returns `PENDING` when the key is stored but some gateways may still use the old one
 * @throws RefusedError `not_found`, `virtual_key_revoked`, `invalid_request`
 */
export async function replaceKey(
  deps: Pick<RouteDeps, 'db' | 'redis' | 'encryptionKeys' | 'providers'> & { readonly log?: Logger },
  by: Actor,
  id: string,
  key: string,
): Promise<Pending | undefined> {
  const stored = deps.db.transaction(async (tx) =>
    queueCredential(tx, await storeKey(tx, deps, by, id, key)),
  );
  return applyChange(deps, await inTime(stored));
}

/** Stores a new version, unless the key is the same. Returns the id of the credential. */
async function storeKey(
  tx: Transaction,
  { encryptionKeys, providers }: Pick<RouteDeps, 'encryptionKeys' | 'providers'>,
  by: Actor,
  id: string,
  key: string,
): Promise<string> {
  const { accountId } = by;
  const [row] = await tx
    .select({ credential: credentials, provider: virtualKeys.provider })
    .from(virtualKeys)
    .innerJoin(credentials, eq(credentials.id, virtualKeys.credentialId))
    .where(isOwnVirtualKey(accountId, id))
    .for('no key update', { of: credentials });
  if (!row) throw new RefusedError({ code: 'not_found' });
  const { credential } = row;
  if (credential.revokedAt) throw new RefusedError({ code: 'virtual_key_revoked' });
  // The operator may have removed the provider, and may add it again.
  const provider = providers.get(row.provider);
  if (provider) checkKey(provider, 'key', key);
  const context = credentialContext(accountId, credential.id);
  const isSame = unsealed(encryptionKeys, credential.sealed, context) === key;
  const version = credential.version + (isSame ? 0 : 1);
  await recordChange(tx, by, {
    action: 'virtual_key.rotated',
    target: { kind: 'virtual_key', id },
    before: { version: credential.version },
    after: { version },
  });
  if (isSame) return credential.id;
  const next = { sealed: seal(encryptionKeys, key, context), version };
  await tx.update(credentials).set(next).where(eq(credentials.id, credential.id));
  return credential.id;
}

/** Undefined if the encryption key is gone. An operator recovers from that by a rotation. */
function unsealed(keys: EncryptionKeys, sealed: string, context: string): string | undefined {
  try {
    return unseal(keys, sealed, context);
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}
