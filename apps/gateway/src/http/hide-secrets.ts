import type { Reservation } from '../share/body-memory.ts';
import { createDecoder, type Decoder } from './decoder.ts';

/** Shorter texts occur by chance, so they are not masked. */
const LEAST_CHARS = 6;
const STAR = 0x2a;

/** The longest compressed body that is decoded to be masked, as far as memory is left for it. */
const CODED_MAX_BYTES = 16 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

/** Replaces an error that cannot be decoded or that exceeds the memory, because it may quote a secret. */
export const NOT_SHOWN = Buffer.from('{"error":{"message":"The gateway could not decode this answer."}}');

/** A secret in one of its forms. */
class Form {
  readonly text: string;
  /** The same bytes as a header value. */
  readonly latin1: string;
  #bytes: Buffer | undefined;
  #borders: Uint32Array | undefined;

  constructor(text: string) {
    this.text = text;
    this.latin1 = Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1');
  }

  /** A short buffer keeps a whole buffer pool alive. A long-lived socket therefore creates none unless it masks something. */
  get bytes(): Buffer {
    this.#bytes ??= Buffer.from(this.text);
    return this.#bytes;
  }

  /** Only the masking of a body needs these buffers. */
  get borders(): Uint32Array {
    this.#borders ??= bordersOf(this.bytes);
    return this.#borders;
  }
}

/** Texts that an answer must not quote, in every form in which it may quote them. Errors quote what was sent, keys included. */
export class Secrets {
  readonly forms: readonly Form[];

  constructor(texts: readonly string[]) {
    this.forms = formsOf(texts).map((each) => new Form(each));
  }

  /** Masks the secrets in a header. */
  hide(header: string): string {
    if (!this.forms.some(({ latin1 }) => header.includes(latin1))) return header;
    return this.mask(Buffer.from(header, 'latin1')).toString('latin1');
  }

  /** Masks the complete secrets in a buffer. The input is not modified, and a mask is as long as its secret. */
  mask(bytes: Buffer): Buffer {
    if (!this.forms.some(({ text }) => bytes.includes(text))) return bytes;
    const found = this.forms.flatMap((form) => placesOf(bytes, form.bytes));
    const masked = Buffer.from(bytes);
    for (const { at, end } of found) masked.fill(STAR, at, end);
    return masked;
  }
}

export const NO_SECRETS = new Secrets([]);

/** Masks secrets in a streamed answer. Only bytes that may begin a secret wait for the next chunk. */
export class SecretMask {
  readonly #secrets: Secrets;
  #pending: Buffer = NOTHING;

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  push(chunk: Buffer): Buffer {
    const joined = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    const bytes = this.#secrets.mask(joined);
    const begun = this.#secrets.forms.map((form) => begunAtEnd(bytes, form));
    const passes = bytes.length - Math.max(0, ...begun);
    // A copy, because the caller may use the chunk again.
    this.#pending = passes === bytes.length ? NOTHING : Buffer.from(bytes.subarray(passes));
    return bytes.subarray(0, passes);
  }

  /** The bytes that still wait after the last chunk. */
  end(): Buffer {
    const rest = this.#pending;
    this.#pending = NOTHING;
    return rest;
  }
}

/** Masks secrets in a body. A compressed body is decoded, and is returned at its end. */
export class MaskedBody {
  readonly #mask: SecretMask;
  readonly #decoder: Decoder | undefined;
  readonly #memory: Reservation;
  #decoded: Buffer[] = [];
  #hasRoom = true;

  /** @param memory for a compressed body; the caller releases it */
  constructor(contentEncoding: string, secrets: Secrets, memory: Reservation) {
    this.#mask = new SecretMask(secrets);
    this.#memory = memory;
    this.#decoder = isCoded(contentEncoding)
      ? createDecoder(contentEncoding, CODED_MAX_BYTES, (bytes) => this.#keep(bytes))
      : undefined;
  }

  push(chunk: Buffer): Buffer {
    if (!this.#decoder) return this.#mask.push(chunk);
    // Bytes that wait for the decoder take memory, too.
    if (this.#reserve(chunk.length)) this.#decoder.push(chunk);
    return NOTHING;
  }

  #keep(bytes: Buffer): boolean {
    if (!this.#reserve(bytes.length)) return false;
    this.#decoded.push(this.#mask.push(bytes));
    return true;
  }

  #reserve(bytes: number): boolean {
    this.#hasRoom &&= this.#memory.reserve(bytes);
    if (!this.#hasRoom) this.#decoded = [];
    return this.#hasRoom;
  }

  /** The rest of the body. Undefined if it could not be decoded, or exceeded the memory. */
  async end(): Promise<Buffer | undefined> {
    if (!this.#decoder) return this.#mask.end();
    const isWhole = await this.#decoder.end();
    if (!isWhole || !this.#hasRoom) return undefined;
    return Buffer.concat([...this.#decoded, this.#mask.end()]);
  }
}

/** The codings that IANA lists, without identity (HTTP Content Coding Registry, 2026-11). */
const CODINGS: ReadonlySet<string> = new Set(
  'aes128gcm br compress dcb dcz deflate exi gzip pack200-gzip x-compress x-gzip zstd'.split(' '),
);

/** Whether a body is compressed. Some servers state a charset or `none` as the coding. */
export const isCoded = (contentEncoding: string): boolean =>
  contentEncoding.split(',').some((each) => CODINGS.has(each.trim().toLowerCase()));

/** A secret as an answer may quote it: as it is, as JSON writes it, and percent-encoded. */
function formsOf(secrets: readonly string[]): readonly string[] {
  const forms = secrets
    .filter((each) => each.length >= LEAST_CHARS)
    .flatMap((each) => [each, JSON.stringify(each).slice(1, -1), encodeURIComponent(each.toWellFormed())]);
  return [...new Set(forms)];
}

function placesOf(bytes: Buffer, secret: Buffer): readonly { readonly at: number; readonly end: number }[] {
  const places: { at: number; end: number }[] = [];
  for (let at = bytes.indexOf(secret); at >= 0; at = bytes.indexOf(secret, at + secret.length))
    places.push({ at, end: at + secret.length });
  return places;
}

/**
 * The prefix function: for each prefix of a text, the length of its longest proper prefix that is also a suffix. With
 * it a search never reads a byte twice (Knuth, Morris and Pratt, 1977).
 */
function bordersOf(text: Buffer): Uint32Array {
  const borders = new Uint32Array(text.length);
  for (let i = 1, length = 0; i < text.length; i++) {
    while (length > 0 && text[i] !== text[length]) length = borders[length - 1] ?? 0;
    if (text[i] === text[length]) length++;
    borders[i] = length;
  }
  return borders;
}

/** How many bytes at the end begin the secret. */
function begunAtEnd(bytes: Buffer, { bytes: secret, borders }: Form): number {
  let length = 0;
  for (let i = Math.max(0, bytes.length - secret.length + 1); i < bytes.length; i++) {
    while (length > 0 && bytes[i] !== secret[length]) length = borders[length - 1] ?? 0;
    if (bytes[i] === secret[length]) length++;
  }
  return length;
}
