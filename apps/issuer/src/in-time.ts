import { RefusedError } from '@presign/schema';
import type { Context } from 'hono';
import { DATABASE_UNAVAILABLE } from './middleware/errors.ts';

/** Longer than a request waits for an earlier one with its `Idempotency-Key`, shorter than clients wait for an answer. */
const LONGEST_MS = 8_000;

/**
 * Waits a bounded time for Postgres: a server that hangs, or a network that drops packets, never reports an error.
 * @throws RefusedError `database_unavailable` after `longestMs`; the query may still take effect
 */
export function inTime<T>(asked: PromiseLike<T>, longestMs = LONGEST_MS): Promise<T> {
  let timer: NodeJS.Timeout;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const cause = new Error(`no answer from Postgres in ${longestMs} ms`);
      reject(new RefusedError(DATABASE_UNAVAILABLE, { cause }));
    }, longestMs);
  });
  return Promise.race([asked, late]).finally(() => clearTimeout(timer));
}

/**
 * Requests of one expensive kind that read at once. Each may keep a connection for long, and issuing needs one, too.
 */
const AT_ONCE = 3;

/** Runs the queries of a request when its turn has come, unless its caller has left. */
export type InTurn = <T>(c: Context, run: () => Promise<T>) => Promise<T>;

/**
 * Makes a queue for requests of one kind: `AT_ONCE` of them read at once, and the others wait, first in, first out.
 * @returns a function that throws RefusedError `database_unavailable` after `longestMs`
 */
export function inTurn(longestMs = LONGEST_MS): InTurn {
  let free = AT_ONCE;
  const waiting: (() => void)[] = [];
  const takeTurn = async () => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const passOn = () => {
    const next = waiting.shift();
    if (next) next();
    else free++;
  };
  return (c, run) => {
    const until = performance.now() + longestMs;
    const turn = async () => {
      await takeTurn();
      try {
        // The caller has left, or inTime has already answered for this request.
        if (performance.now() >= until || c.req.raw.signal.aborted)
          throw new RefusedError(DATABASE_UNAVAILABLE);
        return await run();
      } finally {
        passOn();
      }
    };
    return inTime(turn(), longestMs);
  };
}
