import { type EncryptionKeys, sealDeterministic, unseal } from '@presign/crypto';
import type { VerifiedGrant } from '../../grant/verify.ts';

/**
 * The kinds of ids that a server issues and accepts. `sticky` is a session with cookies, `pending` an event of a stream with open requests,
 * and `round` a state with its round. One kind is never accepted as another.
 */
export type IdKind =
  | 'session'
  | 'sticky'
  | 'event'
  | 'pending'
  | 'task'
  | 'cursor'
  | 'state'
  | 'round'
  | 'request'
  | 'progress';

/**
 * Seals an id of a server for the holder who gets it. The associated data names the grant, so every gateway can unseal the id, and it is
 * invalid with another grant. The same id and grant give the same text, because clients compare ids, and some servers repeat the session id
 * in every answer: the official Go SDK fails when that changes (`mismatching session IDs`).
 */
export const sealId = (keys: EncryptionKeys, grant: VerifiedGrant, kind: IdKind, id: string): string =>
  sealDeterministic(keys, id, contextOf(kind, grant));

/** The server's own id. Undefined when the holder's was not sealed for this grant, as an id of this kind. */
export const unsealId = (
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  kind: IdKind,
  sealed: string,
): string | undefined => tryUnseal(keys, sealed, contextOf(kind, grant));

const contextOf = (kind: IdKind, grant: VerifiedGrant) => `mcp ${kind} ${grant.id}`;

/** Undefined when the text was not sealed in this context. */
export function tryUnseal(keys: EncryptionKeys, sealed: string, context: string): string | undefined {
  try {
    return unseal(keys, sealed, context);
  } catch {
    return undefined;
  }
}

/**
 * The longest ids that are sealed. A longer id passes unsealed, and is unknown when it is sent back. A holder sends the ids of tasks and
 * events in a header. The answer to a server's request contains the request's id, which is short in practice.
 */
const MOST_CHARS: Readonly<Record<IdKind, number>> = {
  session: Number.POSITIVE_INFINITY,
  sticky: Number.POSITIVE_INFINITY,
  event: 1_024,
  pending: Number.POSITIVE_INFINITY,
  task: 2_048,
  cursor: 4_096,
  state: 65_536,
  round: Number.POSITIVE_INFINITY,
  request: 512,
  progress: 512,
};

/** Whether an id of the server is short enough to be sealed. */
export const isShort = (kind: IdKind, id: string): boolean => id.length <= MOST_CHARS[kind];

/** Seals a string or number of a JSON text, as JSON: ids of JSON-RPC keep their type, and every digit. Undefined if it is too long. */
export function sealScalar(keys: EncryptionKeys, grant: VerifiedGrant, kind: IdKind, json: string) {
  // One string has one spelling here, however the server escapes it.
  const id = json.startsWith('"') ? JSON.stringify(JSON.parse(json)) : json;
  return isShort(kind, id) ? `"${sealId(keys, grant, kind, id)}"` : undefined;
}
