import { type EncryptionKeys, MaskedSecret, unseal } from '@presign/crypto';
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

/**
 * Loads a grant's credential in the version that its admission named: from memory, else from Redis. To decrypt it for each call took
 * 4 % of a call's CPU time, so memory has it masked from its first call on.
 */
export function loadSecret(
  deps: Deps,
  requestId: string,
  policy: Policy,
  version: number,
): LoadedSecret | Promise<LoadedSecret> {
  const known = deps.memory.credentials.get(policy.ref.credentialId);
  if (known?.version !== version) return findSecret(deps, requestId, policy);
  if ('secret' in known) return { is: 'loaded', secret: known.secret.reveal() };
  return unsealed(deps, policy, known);
}

async function findSecret(deps: Deps, requestId: string, policy: Policy): Promise<LoadedSecret> {
  const { partition, credentialId } = policy.ref;
  const found = await findCredential(deps.redis, partition, credentialId).catch((error: unknown) => {
    outageRefusal(deps.log, requestId, error);
    return undefined;
  });
  return found ? unsealed(deps, policy, found) : { is: 'unavailable' };
}

function unsealed(
  { memory, log, encryptionKeys }: Deps,
  { accountId, ref: { credentialId } }: Policy,
  { version, sealed }: { readonly version: number; readonly sealed: string },
): LoadedSecret {
  try {
    const secret = unseal(encryptionKeys, sealed, credentialContext(accountId, credentialId));
    memory.credentials.set(credentialId, { version, secret: new MaskedSecret(secret) });
    return { is: 'loaded', secret };
  } catch (error) {
    const named = { credential: credentialId, error: (error as Error).name };
    log.error(named, 'a credential could not be decrypted');
    return { is: 'unsealable' };
  }
}
