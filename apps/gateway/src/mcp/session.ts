import { type EncryptionKeys, sealDeterministic, unseal } from '@presign/crypto';
import type { VerifiedGrant } from '../grant/verify.ts';

/**
 * Seals a server's session id for the holder. The associated data names the grant, so every gateway can unseal the id,
 * and it is of no use with another grant. The same id and grant give the same text, because some servers repeat the id in
 * every answer, and the official Go SDK fails when it changes (`mismatching session IDs`).
 */
export const sealSession = (keys: EncryptionKeys, grant: VerifiedGrant, id: string): string =>
  sealDeterministic(keys, id, sessionContext(grant));

/** The server's own session id. Undefined when the holder's id was not sealed for this grant. */
export const unsealSession = (
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  sealed: string,
): string | undefined => tryUnseal(keys, sealed, sessionContext(grant));

const sessionContext = (grant: VerifiedGrant) => `mcp session ${grant.id}`;

/** Undefined when the text was not sealed in this context. */
export function tryUnseal(keys: EncryptionKeys, sealed: string, context: string): string | undefined {
  try {
    return unseal(keys, sealed, context);
  } catch {
    return undefined;
  }
}
