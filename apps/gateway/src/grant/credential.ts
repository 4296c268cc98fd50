import { type EncryptionKeys, unseal } from '@presign/crypto';
import { findCredential, type RedisClient } from '@presign/limits';
import { credentialContext } from '@presign/schema/tables';
import type { Logger } from 'pino';
import { outageRefusal } from '../http/refuse.ts';
import type { GrantMemory, Policy, SealedCredential } from './policy.ts';

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

/** Loads a grant's credential in the version that its admission named, and decrypts it. */
export async function loadSecret(
  deps: Deps,
  requestId: string,
  { accountId, ref }: Policy,
  version: number,
): Promise<LoadedSecret> {
  const remembered = deps.memory.credentials.get(ref.credentialId);
  const found = remembered?.version === version ? remembered : await findSealed(deps, requestId, ref);
  if (!found) return { is: 'unavailable' };
  try {
    const context = credentialContext(accountId, ref.credentialId);
    return { is: 'loaded', secret: unseal(deps.encryptionKeys, found.sealed, context) };
  } catch (error) {
    const named = { credential: ref.credentialId, error: (error as Error).name };
    deps.log.error(named, 'a credential could not be decrypted');
    return { is: 'unsealable' };
  }
}

async function findSealed(
  { redis, memory, log }: Deps,
  requestId: string,
  ref: Policy['ref'],
): Promise<SealedCredential | undefined> {
  try {
    const found = await findCredential(redis, ref.partition, ref.credentialId);
    if (found) memory.credentials.set(ref.credentialId, found);
    return found;
  } catch (error) {
    outageRefusal(log, requestId, error);
    return undefined;
  }
}
