import { CHUNK_OVERHEAD_BYTES } from './body-memory.ts';

/** Two lengths and their checksum before the headers, and the checksum of the whole after the payload. */
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;

/**
 * Splits a stream of AWS's binary messages (`application/vnd.amazon.eventstream`), byte for byte, wherever its chunks end.
 * A message begins with its own length. https://smithy.io/2.0/aws/amazon-eventstream.html
 */
export class FrameSplitter {
  #pending: Buffer[] = [];
  #waiting = 0;
  /** The length of the message whose bytes are waiting, once four of them are. */
  #length: number | undefined;
  #isLost = false;

  /** Takes the next bytes. Returns the messages that are complete now. */
  push(chunk: Buffer): Buffer[] {
    const frames: Buffer[] = [];
    let rest = chunk;
    while (rest.length > 0 && !this.#isLost) {
      const wanted = (this.#length ?? 4) - this.#waiting;
      const taken = rest.subarray(0, wanted);
      this.#keep(taken);
      rest = rest.subarray(taken.length);
      if (taken.length < wanted) break;
      if (this.#length === undefined) this.#readLength();
      else frames.push(this.rest());
    }
    if (this.#isLost && rest.length > 0) this.#keep(rest);
    return frames;
  }

  /** How many bytes the incomplete message takes, with the overhead of its chunks. Infinite after a length that no message has. */
  get waiting(): number {
    return this.#isLost
      ? Number.POSITIVE_INFINITY
      : this.#waiting + this.#pending.length * CHUNK_OVERHEAD_BYTES;
  }

  /** Returns the bytes after the last complete message, and forgets them. */
  rest(): Buffer {
    const whole = this.#pending.length === 1 ? this.#pending[0] : Buffer.concat(this.#pending);
    this.#pending = [];
    this.#waiting = 0;
    this.#length = undefined;
    return whole ?? Buffer.alloc(0);
  }

  #keep(bytes: Buffer): void {
    this.#pending.push(bytes);
    this.#waiting += bytes.length;
  }

  #readLength(): void {
    const length = Buffer.concat(this.#pending).readUInt32BE(0);
    this.#length = length;
    this.#isLost = length < PRELUDE_BYTES + CHECKSUM_BYTES;
  }
}

/**
 * Reads the payload of one message as text, and the name of its event or exception. Checksums are not verified: TCP and
 * TLS have their own. Undefined if the message contradicts itself.
 */
export function readFrame(
  bytes: Buffer,
): { readonly data: string; readonly name: string | undefined } | undefined {
  const headersEnd = PRELUDE_BYTES + bytes.readUInt32BE(4);
  const payloadEnd = bytes.length - CHECKSUM_BYTES;
  if (headersEnd > payloadEnd) return undefined;
  const headers = readHeaders(bytes.subarray(PRELUDE_BYTES, headersEnd));
  if (!headers) return undefined;
  const name = headers.get(':event-type') ?? headers.get(':exception-type') ?? headers.get(':error-code');
  return { data: bytes.toString('utf8', headersEnd, payloadEnd), name };
}

/** The length of a header's value by its type. `stated` values begin with their own length. */
const VALUE_BYTES: readonly (number | 'stated')[] = [0, 0, 1, 2, 4, 8, 'stated', 'stated', 8, 16];
const TEXT = 7;

/** The headers that hold text. Undefined if they do not fill their bytes. */
function readHeaders(bytes: Buffer): ReadonlyMap<string, string> | undefined {
  const texts = new Map<string, string>();
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0);
    const type = bytes[nameEnd];
    const size = type === undefined ? undefined : VALUE_BYTES[type];
    if (size === undefined) return undefined;
    if (size === 'stated' && nameEnd + 3 > bytes.length) return undefined;
    const from = nameEnd + (size === 'stated' ? 3 : 1);
    const end = from + (size === 'stated' ? bytes.readUInt16BE(nameEnd + 1) : size);
    if (end > bytes.length) return undefined;
    if (type === TEXT) texts.set(bytes.toString('utf8', at + 1, nameEnd), bytes.toString('utf8', from, end));
    at = end;
  }
  return texts;
}
