import { randomUUID } from 'node:crypto';
import type { EncryptionKeys } from '@presign/crypto';
import type { VerifiedGrant } from '../../grant/verify.ts';
import type { Cookie } from './cookies.ts';
import { sealId, unsealId } from './seal.ts';

/** A session id that its holder sends. */
export type Session = {
  /** The server's own id. Undefined: the server has none, and the id is the gateway's own. */
  readonly id: string | undefined;
  /** The cookies of the answer that began it. A balancer finds the server's replica by them. */
  readonly cookies: readonly Cookie[];
};

/**
 * Seals a session for its holder. Without an id of the server, each session gets its own text, which distinguishes clients that share a
 * URL.
 */
export const sealSession = (keys: EncryptionKeys, grant: VerifiedGrant, { id, cookies }: Session): string =>
  id !== undefined && cookies.length === 0
    ? sealId(keys, grant, 'session', id)
    : sealId(
        keys,
        grant,
        'sticky',
        JSON.stringify([id ?? null, cookies, id === undefined ? randomUUID() : '']),
      );

/** Undefined when the text was not sealed for this grant. */
export function unsealSession(
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  sealed: string,
): Session | undefined {
  const id = unsealId(keys, grant, 'session', sealed);
  if (id !== undefined) return { id, cookies: [] };
  const text = unsealId(keys, grant, 'sticky', sealed);
  if (text === undefined) return undefined;
  const [own, cookies] = JSON.parse(text) as [string | null, readonly Cookie[]];
  return { id: own ?? undefined, cookies };
}
