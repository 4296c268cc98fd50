import * as threads from 'node:worker_threads';

/** The memory for bodies and events that are read whole. All calls of one gateway share it. */
export type BodyMemory = {
  /** An empty reservation for one call. */
  readonly newReservation: () => Reservation;
};

/** The memory that one call has reserved. */
export type Reservation = {
  /** The largest body that may be read whole, in bytes. */
  readonly maxBodyBytes: number;
  /** Names the URL of the call. Later reservations also count against the share of this URL. */
  readonly belongsTo: (grantId: string) => void;
  /** Reserves this many bytes more. Returns false, and reserves nothing, when too much is reserved already. */
  readonly reserve: (bytes: number) => boolean;
  /** Releases everything that the call has reserved. A second release does nothing. */
  readonly release: () => void;
};

/** Bodies up to this size find room even when large ones fill their share. */
export const SMALL_BODY_BYTES = 64 * 1024;

/** The overhead of Node for each chunk that is kept. It counts, because a body or an answer may arrive in chunks of one byte. */
export const CHUNK_OVERHEAD_BYTES = 256;

/** Kept free for small bodies, so that a few large bodies that arrive slowly do not stop all other calls. */
const SMALL_SHARE = 1 / 8;

/** The share of the memory for large bodies that one URL may use, so that no URL can use all of it. */
const URL_SHARE = 1 / 4;

/**
 * @param mostBytes all bodies together
 * @param maxBodyBytes the largest single body. It fits whatever the share of a URL is.
 */
export function bodyMemory(mostBytes: number, maxBodyBytes: number): BodyMemory {
  const mostForLarge = Math.floor(mostBytes * (1 - SMALL_SHARE));
  // A body is counted with an overhead for each of its chunks, hence twice.
  const mostForUrl = Math.min(mostForLarge, Math.max(Math.floor(mostForLarge * URL_SHARE), 2 * maxBodyBytes));
  // A URL whose large bodies fill its share has room for small ones, but not for so many that others find none.
  const mostOfUrl = mostForUrl + Math.floor((mostBytes - mostForLarge) / 2);
  const byUrl = new Map<string, number>();
  let all = 0;
  return {
    newReservation: () => {
      let own = 0;
      let url: string | undefined;
      const add = (bytes: number) => {
        all += bytes;
        own += bytes;
        if (url === undefined) return;
        const ofUrl = (byUrl.get(url) ?? 0) + bytes;
        if (ofUrl > 0) byUrl.set(url, ofUrl);
        else byUrl.delete(url);
      };
      return {
        maxBodyBytes,
        belongsTo: (grantId) => {
          url = grantId;
        },
        reserve: (bytes) => {
          const isLarge = own + bytes > SMALL_BODY_BYTES;
          if (all + bytes > (isLarge ? mostForLarge : mostBytes)) return false;
          const ofUrl = url === undefined ? 0 : (byUrl.get(url) ?? 0);
          if (ofUrl + bytes > (isLarge ? mostForUrl : mostOfUrl)) return false;
          add(bytes);
          return true;
        },
        release: () => add(-own),
      };
    },
  };
}

/**
 * The memory of a body's parts that moves to another thread. Small buffers are parts of a pool that stays with its thread, and are
 * copied: Node 20 does so by itself, and later versions throw.
 */
export const movable = (parts: readonly Uint8Array[]): ArrayBuffer[] =>
  [...new Set(parts.map(({ buffer }) => buffer as ArrayBuffer))].filter(
    (buffer) => buffer.byteLength > Buffer.poolSize && !isOfPool(buffer),
  );

/** Whether memory belongs to a pool. Node 20 cannot tell. A pool of Node 26 takes a little more than `Buffer.poolSize`. */
const { isMarkedAsUntransferable: isOfPool = () => false } = threads as {
  readonly isMarkedAsUntransferable?: (memory: object) => boolean;
};

/** Chunks shorter than this are copied together, because a buffer of its own takes a kilobyte, however short it is. */
const SHORT_BYTES = 1024;
const BLOCK_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

/** The chunks of a body. The first is never copied, because most bodies have no other. */
export class Chunks {
  #chunks: Buffer[] = [];
  #block = NOTHING;
  #used = 0;

  push(chunk: Buffer): void {
    if (chunk.length >= SHORT_BYTES || this.#chunks.length === 0) {
      this.#endBlock();
      this.#chunks.push(chunk);
      return;
    }
    if (this.#used + chunk.length > this.#block.length) {
      this.#endBlock();
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    }
    this.#used += chunk.copy(this.#block, this.#used);
  }

  /** Returns the chunks so far, and forgets them. */
  take(): readonly Buffer[] {
    this.#endBlock();
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  #endBlock(): void {
    if (this.#used > 0) this.#chunks.push(this.#block.subarray(0, this.#used));
    this.#block = NOTHING;
    this.#used = 0;
  }
}

/** The longest event that is waited for. After a longer one the stream passes unread, or ends where its lists of tools are filtered. */
export const EVENT_MAX_BYTES = 16 * 1024 * 1024;
/** Memory for incomplete events is reserved in steps of this size. */
const EVENT_STEP_BYTES = 16 * 1024;

/** The memory of an event that is not complete yet. */
export class EventMemory {
  readonly #reservation: Reservation;
  #reservedBytes = 0;

  constructor(reservation: Reservation) {
    this.#reservation = reservation;
  }

  /** Reserves memory for the bytes that wait now. Returns false when they are too many, or there is no memory. */
  holds(bytes: number): boolean {
    if (bytes <= EVENT_STEP_BYTES && this.#reservedBytes > 0) {
      this.#reservation.release();
      this.#reservedBytes = 0;
    }
    while (this.#reservedBytes < bytes) {
      if (bytes > EVENT_MAX_BYTES || !this.#reservation.reserve(EVENT_STEP_BYTES)) return false;
      this.#reservedBytes += EVENT_STEP_BYTES;
    }
    return true;
  }
}
