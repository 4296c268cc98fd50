import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Turn } from '../share/turns.ts';

/** Decodes an answer while it arrives, for a reader that does not store it. */
export type Decoder = {
  readonly push: (chunk: Buffer) => void;
  /** Calls back when the pushed bytes have been decoded, so that they do not pile up. Undefined if nothing is decoded. */
  readonly whenReady: ((ready: () => void) => void) | undefined;
  /** Whether every byte so far was decoded and taken. */
  readonly isWhole: () => boolean;
  /** Whether every byte was decoded and taken. It is a promise only if the answer is compressed. */
  readonly end: () => boolean | Promise<boolean>;
};

/** zlib decodes at most this much at a time. */
const PIECE_BYTES = 16 * 1024;

/** The content codings that the gateway asks for and can decode. */
export const READABLE_CODINGS: ReadonlySet<string> = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'identity']);

/**
 * @param maxBytes the most bytes that are taken, before and after decoding
 * @param take takes decoded bytes. Returns false when it wants no more.
 * @param turn waits for a turn to decode, because a few compressed bytes can decode to very many
 */
export function createDecoder(
  contentEncoding: string,
  maxBytes: number,
  take: (bytes: Buffer) => boolean,
  turn?: Turn,
): Decoder {
  const coding = contentEncoding.trim().toLowerCase() || 'identity';
  let taken = 0;
  let isWhole = READABLE_CODINGS.has(coding);
  const takeDecoded = (bytes: Buffer): void => {
    taken += bytes.length;
    isWhole &&= taken <= maxBytes && take(bytes);
  };
  if (coding === 'identity' || !isWhole) {
    return {
      push: (chunk) => isWhole && takeDecoded(chunk),
      whenReady: undefined,
      isWhole: () => isWhole,
      end: () => isWhole,
    };
  }
  let decoder: Transform | undefined;
  let sent = 0;
  /** Subtracted from the turn before a piece is decoded. */
  let paid = 0;
  const fail = (): void => {
    isWhole = false;
    decoder?.destroy();
  };
  const start = (first: Buffer): Transform => {
    const created = createTransform(coding, first);
    created.on('error', fail);
    created.on('data', (bytes: Buffer) => {
      takeDecoded(bytes);
      if (!isWhole) return fail();
      const isTurn = turn?.take(bytes.length - paid) ?? true;
      paid = 0;
      if (isTurn) return;
      created.pause();
      turn?.next(() => {
        turn.take(PIECE_BYTES);
        paid = PIECE_BYTES;
        created.resume();
      });
    });
    return created;
  };
  return {
    push: (chunk) => {
      sent += chunk.length;
      if (sent > maxBytes) fail();
      if (!isWhole || chunk.length === 0) return;
      decoder ??= start(chunk);
      decoder.write(chunk);
    },
    whenReady: (ready) => {
      const waitingFor = decoder?.writableNeedDrain ? decoder : undefined;
      if (!waitingFor) return ready();
      const proceed = () => {
        waitingFor.off('drain', proceed).off('close', proceed);
        ready();
      };
      waitingFor.on('drain', proceed).on('close', proceed);
    },
    isWhole: () => isWhole,
    end: () =>
      new Promise((resolve) => {
        if (!decoder || !isWhole) return resolve(isWhole);
        decoder.once('close', () => resolve(isWhole));
        decoder.end();
      }),
  };
}

function createTransform(coding: string, first: Buffer): Transform {
  if (coding === 'br') return createBrotliDecompress();
  if (coding !== 'deflate') return createGunzip();
  // Some servers send `deflate` without the zlib format (RFC 9110 §8.4.1.2). The first byte of that format ends in 8.
  return ((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw();
}
