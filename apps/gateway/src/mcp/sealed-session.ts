import { type EncryptionKeys, seal, unseal } from '@presign/crypto';
import type { VerifiedGrant } from '../grant/verify.ts';

/** Where the messages of a session of the older HTTP+SSE transport go, and where its stream listens. */
export type Endpoint = { readonly href: string; readonly channel: string };

/**
 * A server's session id as the holder gets it: sealed with the grant's id, so that it unseals at every gateway and
 * for no other holder.
 */
export const sealSession = (keys: EncryptionKeys, grant: VerifiedGrant, id: string): string =>
  seal(keys, id, `mcp session ${grant.id}`);

/** The server's own id; undefined when the holder's was not given for this grant. */
export const unsealSession = (
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  sealed: string,
): string | undefined => unsealed(keys, sealed, `mcp session ${grant.id}`);

export const sealEndpoint = (keys: EncryptionKeys, grant: VerifiedGrant, endpoint: Endpoint): string =>
  seal(keys, `${endpoint.channel} ${endpoint.href}`, `mcp endpoint ${grant.id}`);

export function unsealEndpoint(
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  sealed: string,
): Endpoint | undefined {
  const text = unsealed(keys, sealed, `mcp endpoint ${grant.id}`);
  const space = text?.indexOf(' ') ?? -1;
  return text === undefined || space < 0
    ? undefined
    : { channel: text.slice(0, space), href: text.slice(space + 1) };
}

function unsealed(keys: EncryptionKeys, sealed: string, context: string): string | undefined {
  try {
    return unseal(keys, sealed, context);
  } catch {
    return undefined;
  }
}
