import { type EncryptionKeys, seal } from '@presign/crypto';
import type { VerifiedGrant } from '../../grant/verify.ts';
import type { Cookie } from './cookies.ts';
import { tryUnseal } from './seal.ts';

/** The endpoint for a session's messages, the cookies of its stream, and the channel on which the stream listens. */
export type Endpoint = {
  readonly href: string;
  readonly channel: string;
  readonly cookies: readonly Cookie[];
};

/** The query parameters of a holder's endpoint: those of the stream's URL, plus the sealed endpoint. */
export function sealEndpoint(keys: EncryptionKeys, grant: VerifiedGrant, endpoint: Endpoint): string {
  const { channel, href, cookies } = endpoint;
  const kept = cookies.length === 0 ? '' : ` ${JSON.stringify(cookies)}`;
  return seal(keys, `${channel} ${href}${kept}`, endpointContext(grant));
}

/** Undefined without an endpoint, or if it was not sealed for this grant. */
export function unsealEndpoint(
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  sealed: string | undefined,
): Endpoint | undefined {
  if (sealed === undefined) return undefined;
  const text = tryUnseal(keys, sealed, endpointContext(grant));
  const [channel = '', href, ...kept] = text?.split(' ') ?? [];
  if (href === undefined) return undefined;
  return { channel, href, cookies: kept.length === 0 ? [] : (JSON.parse(kept.join(' ')) as Cookie[]) };
}

const endpointContext = (grant: VerifiedGrant) => `mcp endpoint ${grant.id}`;
