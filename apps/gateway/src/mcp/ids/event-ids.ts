import type { EncryptionKeys } from '@presign/crypto';
import type { VerifiedGrant } from '../../grant/verify.ts';
import type { RpcId } from './rpc-id.ts';
import { isShort, sealId, unsealId } from './seal.ts';

const [LF, CR, SPACE] = [0x0a, 0x0d, 0x20];
const FIELD = Buffer.from('id:');
/** Before the first line of a stream (WHATWG HTML §9.2.5). */
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/**
 * Seals the id of an event, so that only the holder who got the event can request the events after it. All other bytes are unchanged. An id
 * that is too long is omitted, and a client then resumes after an earlier event.
 * @param bytes the lines of one event, as received
 * @param isLeftOut omits any id
 * @param open the requests that the stream has not answered. The id contains them, so that any gateway knows which answers a resumed stream
 * has to deliver
 */
export function sealEventId(
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  bytes: Buffer,
  isLeftOut: boolean,
  open: readonly RpcId[] = [],
): Buffer {
  const line = lastIdLine(bytes);
  if (!line) return bytes;
  const id = bytes.toString('utf8', line.value, line.end);
  const isKept = !isLeftOut && isShort('event', id);
  // A comment takes its place.
  const written = isKept ? `id: ${sealEvent(keys, grant, { id, open })}` : ': id';
  return Buffer.concat([bytes.subarray(0, line.start), Buffer.from(written), bytes.subarray(line.end)]);
}

/** The event after which a stream resumes, as its holder sends it. */
type LastEvent = { readonly id: string; readonly open: readonly RpcId[] };

/** The maximum total length of a stream's open requests in an id. Longer ones are omitted, because a holder sends the id in a header. */
const OPEN_MAX_CHARS = 1_024;

function sealEvent(keys: EncryptionKeys, grant: VerifiedGrant, { id, open }: LastEvent): string {
  const text = JSON.stringify([id, open]);
  return open.length === 0 || text.length > id.length + OPEN_MAX_CHARS
    ? sealId(keys, grant, 'event', id)
    : sealId(keys, grant, 'pending', text);
}

/** Undefined when the text was not sealed for this grant. */
export function unsealEvent(
  keys: EncryptionKeys,
  grant: VerifiedGrant,
  sealed: string,
): LastEvent | undefined {
  const id = unsealId(keys, grant, 'event', sealed);
  if (id !== undefined) return { id, open: [] };
  const text = unsealId(keys, grant, 'pending', sealed);
  if (text === undefined) return undefined;
  const [own, open] = JSON.parse(text) as [string, readonly RpcId[]];
  return { id: own, open };
}

type IdLine = { readonly start: number; readonly value: number; readonly end: number };

/** The line that decides the id of an event. Undefined if it has no id or an empty id, which only resets the last id. */
function lastIdLine(bytes: Buffer): IdLine | undefined {
  for (let start = bytes.lastIndexOf(FIELD); start >= 0; start = bytes.lastIndexOf(FIELD, start - 1)) {
    if (beginsLine(bytes, start)) {
      const colon = start + FIELD.length - 1;
      const value = bytes[colon + 1] === SPACE ? colon + 2 : colon + 1;
      let end = value;
      while (end < bytes.length && bytes[end] !== LF && bytes[end] !== CR) end++;
      return end === value ? undefined : { start, value, end };
    }
    if (start === 0) break;
  }
  return undefined;
}

const beginsLine = (bytes: Buffer, at: number): boolean =>
  at === 0 ||
  bytes[at - 1] === LF ||
  bytes[at - 1] === CR ||
  (at === BYTE_ORDER_MARK.length && bytes.subarray(0, at).equals(BYTE_ORDER_MARK));
