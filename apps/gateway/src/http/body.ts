import type { IncomingMessage } from 'node:http';
import { pipeline, Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { Refusal } from '@presign/schema';
import { bodyOf, turnOfRefused } from '../share/arrival.ts';
import { CHUNK_OVERHEAD_BYTES, Chunks, type Reservation, SMALL_BODY_BYTES } from '../share/body-memory.ts';
import { discardRest } from '../share/discard.ts';

const NOTHING = Buffer.alloc(0);

/** A body: the holder's bytes as they arrive, all of them in one piece or in several, or none. */
export type Body = Readable | Buffer | readonly Buffer[] | null;

type InMemory = Buffer | readonly Buffer[];

/** Whether all of a body is in memory. */
export const isInMemory = (body: Body): body is InMemory => body !== null && !(body instanceof Readable);

/** A body that is in memory, in one piece. */
export const inOnePiece = (body: InMemory): Buffer => (Buffer.isBuffer(body) ? body : Buffer.concat(body));

/** How many bytes a body has. Undefined: it has none, or its end will say. */
export const sizeOf = (body: Body): number | undefined =>
  isInMemory(body) ? piecesOf(body).reduce((sum, { length }) => sum + length, 0) : undefined;

export const piecesOf = (body: InMemory): readonly Buffer[] => (Buffer.isBuffer(body) ? [body] : body);

/** A body in one piece. */
export type Whole = { readonly bytes: Buffer };

/**
 * How long a buffered body may take to arrive: half a minute, plus a second for each of these many bytes. The limit
 * exists because other calls cannot use its memory meanwhile. Bytes are counted as sent, because 440 KB of gzip can
 * decode to 440 MB.
 */
const PATIENCE_MS = 30_000;
const SLOWEST_BYTES_PER_SECOND = 16 * 1024;

/**
 * Reads a body without decoding it. The size limit applies before and after decoding. After a refusal the connection stays open and the
 * rest of the body is discarded.
 */
export function readWhole(request: IncomingMessage, memory: Reservation): Read | Promise<Read> {
  if (statesTooMuch(request, memory)) return { refusal: tooLarge(memory) };
  return takeArrived(request, memory) ?? awaitBody(request, memory);
}

async function awaitBody(request: IncomingMessage, memory: Reservation): Promise<Read> {
  // Node emits a body that arrived together with the headers right after the headers.
  await undefined;
  return takeArrived(request, memory) ?? gather(request, bodyOf(request), memory, BROKEN_OFF);
}

type Read = Whole | { readonly refusal: Refusal };

/**
 * Takes a small body that has already arrived. Most have, because they arrive in one chunk with their headers. Undefined: it has not
 * arrived, or is large. Listening for such a body would cost more than all other work on it.
 */
function takeArrived(request: IncomingMessage, memory: Reservation): Read | undefined {
  const size = statedSize(request);
  const isThere = request.readableLength === size && !request.destroyed;
  if (!isThere || size > SMALL_BODY_BYTES || bodyOf(request) !== request) return undefined;
  if (!memory.reserve(size + CHUNK_OVERHEAD_BYTES)) {
    discardRest(request);
    return { refusal: OVERLOADED };
  }
  const bytes: Buffer = request.read() ?? NOTHING;
  // Node sees the end of a request only while it is read.
  request.resume();
  return { bytes };
}

/** Reads a body and removes its content coding (RFC 9110 §8.4). The coding must be one of `DECODERS`. */
export function readDecoded(request: IncomingMessage, memory: Reservation): Read | Promise<Read> {
  const coding = contentCoding(request);
  if (coding === 'identity') return readWhole(request, memory);
  const createDecoder = DECODERS.get(coding);
  if (!createDecoder) return { refusal: UNKNOWN_CODING };
  if (statesTooMuch(request, memory)) return { refusal: tooLarge(memory) };
  const decoder = createDecoder();
  pipeline(codedChunks(request, memory.maxBodyBytes), decoder, () => {});
  return gather(request, decoder, memory, UNDECODABLE);
}

const statesTooMuch = ({ headers }: IncomingMessage, { maxBodyBytes }: Reservation): boolean =>
  Number(headers['content-length'] ?? 0) > maxBodyBytes;

/** How long a scan may take. */
const SCAN_MS = 30_000;

/**
 * Passes a body's decoded bytes to `take` without storing them. It stops when `take` returns false, at `maxBytes`, or
 * where decoding fails. A small body is scanned at once, and the rest of a large body in turns.
 */
export async function scanBody(
  request: IncomingMessage,
  maxBytes: number,
  take: (chunk: Buffer) => boolean,
): Promise<void> {
  const coding = contentCoding(request);
  const createDecoder = DECODERS.get(coding);
  if (coding !== 'identity' && !createDecoder) return;
  const late = setTimeout(() => request.destroy(), SCAN_MS);
  const coded = codedChunks(request, maxBytes);
  const decoder = createDecoder?.();
  if (decoder) pipeline(coded, decoder, () => {});
  let size = 0;
  try {
    for await (const chunk of (decoder ?? coded) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes || !take(chunk)) break;
      if (size > SMALL_BODY_BYTES) await turnOfRefused(chunk.length);
    }
  } catch {
    // The result of the scan up to here is kept.
  } finally {
    clearTimeout(late);
  }
}

/** How many bytes a body has, or infinity when the request does not state it. */
export function statedSize({ headers }: IncomingMessage): number {
  return headers['transfer-encoding'] === undefined
    ? Number(headers['content-length'] ?? 0)
    : Number.POSITIVE_INFINITY;
}

/** Whether a body is large, or its size is known only at its end because it is chunked or compressed. */
export const mayBeLarge = (request: IncomingMessage): boolean =>
  statedSize(request) > SMALL_BODY_BYTES || contentCoding(request) !== 'identity';

/** The body's content coding in lower case. Several codings are returned as sent, separated by commas. */
export const contentCoding = ({ headers }: IncomingMessage): string =>
  (headers['content-encoding'] || 'identity').toLowerCase();

async function gather(
  request: IncomingMessage,
  source: Readable,
  memory: Reservation,
  broken: Refusal,
): Promise<Read> {
  const read = await collectChunks(source, request, memory, broken);
  discardRest(request);
  if (source !== request) source.destroy();
  return 'refusal' in read ? read : { bytes: read.parts.whole() };
}

/** Memory for a body is allocated once this many bytes have arrived, so that a stated size alone takes no memory. */
const PLACED_SHARE = 1 / 4;

/**
 * The parts of a body while it arrives. A large body of known size is written into one buffer, because its chunks would take the same
 * memory again until they are collected.
 */
class Parts {
  readonly #size: number;
  readonly #chunks = new Chunks();
  #place: Buffer | undefined;
  #used = 0;

  /** @param size as stated, or infinity. Node ends a body there. */
  constructor(size: number) {
    this.#size = size;
  }

  push(chunk: Buffer): void {
    if (this.#place) {
      this.#used += chunk.copy(this.#place, this.#used);
      free(chunk);
      return;
    }
    this.#chunks.push(chunk);
    this.#used += chunk.length;
    if (this.#size > SMALL_BODY_BYTES && this.#used >= PLACED_SHARE * this.#size) this.#makePlace();
  }

  #makePlace(): void {
    this.#place = Buffer.allocUnsafeSlow(this.#size);
    this.#used = 0;
    for (const chunk of this.#chunks.take()) this.push(chunk);
  }

  whole(): Buffer {
    return this.#place ?? Buffer.concat(this.#chunks.take());
  }
}

/** Frees a copied chunk, if its memory has no other part: V8 marks its whole heap whenever 64 MB wait to be freed. Node 20 cannot. */
function free({ buffer, byteLength }: Buffer): void {
  const memory = buffer as ArrayBuffer & { readonly transfer?: (bytes: number) => ArrayBuffer };
  if (memory.byteLength === byteLength) memory.transfer?.(0);
}

/** Calls back when a body takes longer than its time. */
function watchArrival({ socket }: IncomingMessage, tooSlow: () => void): { readonly stop: () => void } {
  const began = socket.bytesRead;
  let elapsedMs = 0;
  let timer: NodeJS.Timeout;
  const wait = () => {
    const mayTakeMs = PATIENCE_MS + ((socket.bytesRead - began) / SLOWEST_BYTES_PER_SECOND) * 1_000;
    if (mayTakeMs <= elapsedMs) return tooSlow();
    timer = setTimeout(wait, mayTakeMs - elapsedMs);
    elapsedMs = mayTakeMs;
  };
  wait();
  return { stop: () => clearTimeout(timer) };
}

/**
 * Collects a source's chunks until it ends or exceeds a limit. It listens to events, because iterating over a stream
 * costs more. No listener stays on the source, which lives as long as the call.
 */
function collectChunks(
  source: Readable,
  request: IncomingMessage,
  memory: Reservation,
  broken: Refusal,
): Promise<{ parts: Parts } | { refusal: Refusal }> {
  return new Promise((resolve) => {
    const parts = new Parts(source === bodyOf(request) ? statedSize(request) : Number.POSITIVE_INFINITY);
    let size = 0;
    const arrival = watchArrival(request, () => end({ refusal: TOO_SLOW }));
    const end = (result: { parts: Parts } | { refusal: Refusal }) => {
      arrival.stop();
      for (const [event, listener] of Object.entries(listeners)) source.off(event, listener);
      // A later error has no effect, but without a listener it would end the process.
      source.on('error', ignore);
      resolve(result);
    };
    const listeners = {
      data: (chunk: Buffer) => {
        size += chunk.length;
        if (size > memory.maxBodyBytes) end({ refusal: tooLarge(memory) });
        else if (memory.reserve(chunk.length + CHUNK_OVERHEAD_BYTES)) parts.push(chunk);
        else end({ refusal: OVERLOADED });
      },
      end: () => end({ parts }),
      error: (error: Error) => end({ refusal: error instanceof TooLargeError ? tooLarge(memory) : broken }),
      close: () => end({ refusal: broken }),
    };
    // A destroyed source sends no more events.
    if (source.destroyed) end({ refusal: broken });
    else for (const [event, listener] of Object.entries(listeners)) source.on(event, listener);
  });
}

const ignore = () => {};

/** The chunks of a compressed body, for its decoder. Unread chunks are discarded. */
async function* codedChunks(request: IncomingMessage, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const chunk of bodyOf(request).iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      // Bounds the compressed bytes too, because empty parts of a compressed body can repeat endlessly.
      if (size > maxBytes) throw new TooLargeError();
      yield chunk;
    }
  } finally {
    discardRest(request);
  }
}

/** A compressed body exceeds the limit before decoding. */
class TooLargeError extends Error {}

/** Node has zstd since 22.15. */
const {
  createZstdDecompress,
}: typeof zlib & {
  readonly createZstdDecompress?: (options: object) => Transform;
} = zlib;

/** ZSTD_d_windowLogMax: a content coding uses a window of at most 8 MiB (RFC 9659 §3). */
const ZSTD_OPTIONS = { params: { 100: 23 } };

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ['gzip', () => zlib.createGunzip()],
  // RFC 9110 §8.4.1.3: the same as gzip.
  ['x-gzip', () => zlib.createGunzip()],
  ['deflate', () => zlib.createInflate()],
  ['br', () => zlib.createBrotliDecompress()],
  ...(createZstdDecompress ? [['zstd', () => createZstdDecompress(ZSTD_OPTIONS)] as const] : []),
]);

/** The refusal of a body that is larger than may be read. */
export const tooLarge = ({ maxBodyBytes }: Pick<Reservation, 'maxBodyBytes'>): Refusal => ({
  code: 'body_too_large',
  message: `The body may have at most ${maxBodyBytes} bytes.`,
});

const TOO_SLOW: Refusal = {
  code: 'invalid_request',
  message: 'The body arrived too slowly. Send the call again.',
};

const BROKEN_OFF: Refusal = {
  code: 'invalid_request',
  message: 'The connection ended before the whole body arrived. Send the call again.',
};

const OVERLOADED: Refusal = { code: 'overloaded', retryAfterSeconds: 1 };

const UNKNOWN_CODING: Refusal = {
  code: 'unsupported_media_type',
  param: 'Content-Encoding',
  message: `This Content-Encoding is not supported. Send the body without one, or as ${[...DECODERS.keys()].join(', ')}.`,
};

const UNDECODABLE: Refusal = {
  code: 'invalid_request',
  param: 'Content-Encoding',
  message: 'The body is not in its Content-Encoding, or it broke off. Send the call again.',
};

/** How much of a large body is written at a time. */
const PIECE_BYTES = 64 * 1024;

/**
 * Prepares a body for sending. undici keeps an unsplit body until the answer has ended, which may take an hour. A large
 * body is therefore sent in pieces, and its memory can be freed once the last piece is sent.
 * @param whenSent called when the last piece of a large body is taken
 */
export function bodyToSend(body: Body, whenSent: () => void): Readable | Buffer | null {
  if (!isInMemory(body)) return body;
  if ((sizeOf(body) ?? 0) <= SMALL_BODY_BYTES) return inOnePiece(body);
  const rest = [...piecesOf(body)];
  return new Readable({
    read() {
      const piece = takePiece(rest);
      this.push(piece ?? null);
      if (!piece) whenSent();
    },
  });
}

/** Takes the next bytes to write from a body. Pieces that fit into one write are copied together. */
function takePiece(rest: Buffer[]): Buffer | undefined {
  const taken: Buffer[] = [];
  for (let room = PIECE_BYTES; room > 0 && rest[0]; ) {
    const piece = rest[0].subarray(0, room);
    taken.push(piece);
    room -= piece.length;
    if (piece.length < rest[0].length) rest[0] = rest[0].subarray(piece.length);
    else rest.shift();
  }
  return taken.length > 1 ? Buffer.concat(taken) : taken[0];
}
