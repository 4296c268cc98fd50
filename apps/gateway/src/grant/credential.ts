import { type EncryptionKeys, unseal } from '@presign/crypto';
import { findCredential, type RedisClient } from '@presign/limits';
import { credentialContext } from '@presign/schema/tables';
import type { Logger } from 'pino';
import { outageRefusal } from '../http/refuse.ts';
import type { GrantMemory, Policy } from './policy.ts';

/** A credential's secret for one call, or why there is none. */
export type LoadedSecret =
  | { readonly is: 'loaded'; readonly secret: string }
  /** Redis does not answer, or lost the credential after it admitted the call. */
  | { readonly is: 'unavailable' }
  /** It was sealed with a key that this gateway does not have. */
  | { readonly is: 'unsealable' };

type Deps = {
  readonly redis: RedisClient;
  readonly encryptionKeys: EncryptionKeys;
  readonly memory: GrantMemory;
  readonly log: Logger;
};

/** Loads a grant's credential in the version that its admission named, from memory or else from Redis, and decrypts it. */
export function loadSecret(
  deps: Deps,
  requestId: string,
  policy: Policy,
  version: number,
): LoadedSecret | Promise<LoadedSecret> {
  const known = deps.memory.credentials.get(policy.ref.credentialId);
  return known?.version === version
    ? unsealed(deps, policy, known.sealed)
    : findSecret(deps, requestId, policy);
}

async function findSecret(deps: Deps, requestId: string, policy: Policy): Promise<LoadedSecret> {
  const { partition, credentialId } = policy.ref;
  try {
    const found = await findCredential(deps.redis, partition, credentialId);
    if (!found) return { is: 'unavailable' };
    deps.memory.credentials.set(credentialId, found);
    return unsealed(deps, policy, found.sealed);
  } catch (error) {
    outageRefusal(deps.log, requestId, error);
    return { is: 'unavailable' };
  }
}

function unsealed(
  { log, encryptionKeys }: Deps,
  { accountId, ref: { credentialId } }: Policy,
  sealed: string,
): LoadedSecret {
  try {
    return {
      is: 'loaded',
      secret: unseal(encryptionKeys, sealed, credentialContext(accountId, credentialId)),
    };
  } catch (error) {
    const named = { credential: credentialId, error: (error as Error).name };
    log.error(named, 'a credential could not be decrypted');
    return { is: 'unsealable' };
  }
}
