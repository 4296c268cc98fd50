import { type Refusal, rateLimited } from '@presign/schema';
import { LRUCache } from 'lru-cache';

/** Requests without cost, streams included, that one URL may have open at one gateway. */
const OPEN_MAX = 64;

/** Messages without cost that one gateway takes for one URL in a minute, all of them at once or evenly. */
const PER_MINUTE = 600;

/** How many URLs are remembered. One that is forgotten may send a full minute's messages again. */
const REMEMBERED = 10_000;

/**
 * The work that costs neither use nor money: handshakes, lists, notifications, streams, and the status of a URL. It is done even if the URL
 * has no uses left, so each gateway bounds it for each URL.
 */
export type FreeWork = {
  /**
   * Counts a request.
   * @param messages how many of its messages cost nothing
   * @param isFree whether the whole request costs nothing
   * @returns the begun work, or a refusal
   */
  readonly begin: (
    grantId: string,
    messages: number,
    isFree: boolean,
  ) => Begun | { readonly refusal: Refusal };
};

export type Begun = {
  /** Call it when the request has ended. */
  readonly end: () => void;
  /**
   * Marks a request whose stream stays open although no request waits for it. From now on it counts as a stream.
   * @param close ends it when another stream or request needs its place
   */
  readonly isIdle: (close: () => void) => void;
};

/** A request that counts as open, and the function that ends it if no request waits for it. */
type Open = { close?: () => void };
type OpenOfGrant = { readonly all: Set<Open>; readonly idle: Set<Open> };

export function createFreeWork(now: () => number): FreeWork {
  const open = new Map<string, OpenOfGrant>();
  const buckets = new LRUCache<string, { level: number; atMs: number }>({ max: REMEMBERED });
  const take = (grantId: string, messages: number): Refusal | undefined => {
    const nowMs = now();
    const { level, atMs } = buckets.get(grantId) ?? { level: PER_MINUTE, atMs: nowMs };
    const filled = Math.min(PER_MINUTE, level + (Math.max(0, nowMs - atMs) * PER_MINUTE) / 60_000);
    const left = filled - messages;
    buckets.set(grantId, { level: left < 0 ? filled : left, atMs: nowMs });
    if (left >= 0) return undefined;
    const waitMs = (-left * 60_000) / PER_MINUTE;
    const rateLimit = { name: 'calls_per_minute', limit: PER_MINUTE, left: 0, resetMs: waitMs } as const;
    const { rateLimits: _, ...refusal } = rateLimited(
      { rateLimit, waitMs },
      'The free allowance of this URL',
    );
    return refusal;
  };
  const leave = (grantId: string, each: Open) => {
    const of = open.get(grantId);
    of?.all.delete(each);
    of?.idle.delete(each);
    if (of?.all.size === 0) open.delete(grantId);
  };
  const enter = (grantId: string, each: Open): boolean => {
    const [oldest] = open.get(grantId)?.idle ?? [];
    if (oldest && open.get(grantId)?.all.size === OPEN_MAX) {
      leave(grantId, oldest);
      oldest.close?.();
    }
    const of = open.get(grantId) ?? { all: new Set(), idle: new Set() };
    if (of.all.size >= OPEN_MAX) return false;
    of.all.add(each);
    open.set(grantId, of);
    return true;
  };
  return {
    begin: (grantId, messages, isFree) => {
      const refusal = messages === 0 ? undefined : take(grantId, messages);
      if (refusal) return { refusal };
      const each: Open = {};
      if (isFree && !enter(grantId, each)) return { refusal: TOO_MANY_OPEN };
      return {
        end: () => leave(grantId, each),
        isIdle: (close) => {
          each.close = close;
          if (!isFree && !enter(grantId, each)) close();
          else open.get(grantId)?.idle.add(each);
        },
      };
    },
  };
}

const TOO_MANY_OPEN: Refusal = {
  code: 'rate_limited',
  message: `This URL has ${OPEN_MAX} streams and free requests open at this gateway. Close one first.`,
  details: { limit: OPEN_MAX },
  retryAfterSeconds: 5,
};
