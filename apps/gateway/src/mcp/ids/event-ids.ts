import type { EncryptionKeys } from '@presign/crypto';
import type { VerifiedGrant } from '../../grant/verify.ts';
import type { RpcId } from './rpc-id.ts';
import { isShort, sealId, unsealId } from './seal.ts';

const [LF, CR, SPACE] = [0x0a, 0x0d, 0x20];
const FIELD = Buffer.from('id:');
/** Before the first line of a stream (WHATWG HTML §9.2.5). */
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/**
 * Seals the id of an event, so that only the holder who got the event can ask for those after it. Everything else stays byte for byte.
 * An id that is too long is left out: a client then asks for the events after an earlier one.
 * @param bytes the lines of one event, as they came
 * @param isLeftOut leaves any id out
 * @param open the requests that the stream has not answered. They go into the id, so that any gateway knows whose answers a stream brings
 *   that goes on after the event
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

/** An event after which a stream goes on, as its holder hands it back. */
type LastEvent = { readonly id: string; readonly open: readonly RpcId[] };

/** The requests of a stream are left out if they are longer together: a holder sends the id in a header. */
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

/** The line that decides the id of an event. Undefined if it has none, or an empty one, which only takes back the last. */
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
