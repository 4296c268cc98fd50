import type { IncomingMessage } from 'node:http';
import { pipeline, type Readable, type Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { Refusal } from '@presign/schema';
import type { HeldBytes } from './body-memory.ts';

/** A body in one piece. */
export type Whole = { readonly bytes: Buffer };

/** The largest body that is read whole, as it came and decoded. */
export const BODY_MAX_BYTES = 64 * 1024 * 1024;

/** How long a body may take that is read whole: what is held for it, others cannot have. */
const ARRIVAL_MS = 600_000;

/** Reads a body as it comes. A refusal leaves on the same connection, and the rest of the body is thrown away. */
export async function readWhole(
  request: IncomingMessage,
  held: HeldBytes,
): Promise<Whole | { refusal: Refusal }> {
  if (Number(request.headers['content-length'] ?? 0) > BODY_MAX_BYTES) return { refusal: TOO_LARGE };
  return gather(request, request, held, BROKEN_OFF);
}

/** Reads a body without its content coding (RFC 9110 §8.4), of which it may have one that is known here. */
export async function readDecoded(
  request: IncomingMessage,
  held: HeldBytes,
): Promise<Whole | { refusal: Refusal }> {
  const coding = contentCoding(request);
  if (coding === 'identity') return readWhole(request, held);
  const open = DECODERS.get(coding);
  if (!open) return { refusal: UNKNOWN_CODING };
  if (Number(request.headers['content-length'] ?? 0) > BODY_MAX_BYTES) return { refusal: TOO_LARGE };
  const decoder = open();
  pipeline(arriving(request), decoder, () => {});
  return gather(request, decoder, held, UNDECODABLE);
}

/** The body's content coding in lower case; several are told as they stand, separated by commas. */
export const contentCoding = ({ headers }: IncomingMessage): string =>
  (headers['content-encoding'] || 'identity').toLowerCase();

/** Beside the bytes of a chunk, what Node keeps for it: a body may come in chunks of one byte. */
const CHUNK_COSTS_BYTES = 256;

async function gather(
  request: IncomingMessage,
  source: Readable,
  held: HeldBytes,
  broken: Refusal,
): Promise<Whole | { refusal: Refusal }> {
  const late = setTimeout(() => request.destroy(), ARRIVAL_MS);
  const read = await takeAll(source, held, broken);
  clearTimeout(late);
  // A body is not destroyed when left early, but its rest thrown away: who is still sending gets to read the answer.
  if (source === request) source.resume();
  else source.destroy();
  return 'refusal' in read ? read : { bytes: Buffer.concat(read.chunks) };
}

/**
 * What a source brings, until it ends or may bring no more. By events: to iterate over a stream costs more than all
 * else that is done to a small body. Nothing of it stays with the source, which lives as long as the call.
 */
function takeAll(
  source: Readable,
  held: HeldBytes,
  broken: Refusal,
): Promise<{ chunks: Buffer[] } | { refusal: Refusal }> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const end = (told: { chunks: Buffer[] } | { refusal: Refusal }) => {
      for (const [event, listener] of Object.entries(listeners)) source.off(event, listener);
      // What fails from now on is of no interest, but must not go unheard.
      source.on('error', ignore);
      resolve(told);
    };
    const listeners = {
      data: (chunk: Buffer) => {
        size += chunk.length;
        if (size > BODY_MAX_BYTES) end({ refusal: TOO_LARGE });
        else if (held.take(chunk.length + CHUNK_COSTS_BYTES)) chunks.push(chunk);
        else end({ refusal: OVERLOADED });
      },
      end: () => end({ chunks }),
      error: (error: Error) => end({ refusal: error instanceof TooLargeError ? TOO_LARGE : broken }),
      close: () => end({ refusal: broken }),
    };
    // It has told so already.
    if (source.destroyed) end({ refusal: broken });
    else for (const [event, listener] of Object.entries(listeners)) source.on(event, listener);
  });
}

const ignore = () => {};

/** The chunks of a coded body, for its decoder; what the decoder does not take any more is thrown away, too. */
async function* arriving(request: IncomingMessage): AsyncGenerator<Buffer> {
  let size = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      // Bounds what is read: empty parts of a coded body can be repeated for ever.
      if (size > BODY_MAX_BYTES) throw new TooLargeError();
      yield chunk;
    }
  } finally {
    request.resume();
  }
}

/** More bytes than a body may have. */
class TooLargeError extends Error {}

/** Newer Nodes have zstd. */
const {
  createZstdDecompress,
}: typeof zlib & {
  readonly createZstdDecompress?: (options: object) => Transform;
} = zlib;

/** ZSTD_d_windowLogMax: a content coding needs no window over 8 MiB (RFC 9659 §3). */
const ZSTD_OPTIONS = { params: { 100: 23 } };

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ['gzip', () => zlib.createGunzip()],
  // RFC 9110 §8.4.1.3: the same.
  ['x-gzip', () => zlib.createGunzip()],
  ['deflate', () => zlib.createInflate()],
  ['br', () => zlib.createBrotliDecompress()],
  ...(createZstdDecompress ? [['zstd', () => createZstdDecompress(ZSTD_OPTIONS)] as const] : []),
]);

const TOO_LARGE: Refusal = {
  code: 'body_too_large',
  message: `The body may have at most ${BODY_MAX_BYTES} bytes.`,
};

const BROKEN_OFF: Refusal = { code: 'invalid_request', message: 'The body broke off.' };

const OVERLOADED: Refusal = { code: 'overloaded', retryAfterSeconds: 1 };

const UNKNOWN_CODING: Refusal = {
  code: 'unsupported_media_type',
  param: 'Content-Encoding',
  message: `Content-Encoding: none, or one of ${[...DECODERS.keys()].join(', ')}.`,
};

const UNDECODABLE: Refusal = {
  code: 'invalid_request',
  param: 'Content-Encoding',
  message: 'Content-Encoding: the body is not what this says, or broke off.',
};
