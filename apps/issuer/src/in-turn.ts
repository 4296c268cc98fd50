import { RefusedError } from '@presign/schema';
import type { Context } from 'hono';
import { DATABASE_UNAVAILABLE, inTime, LONGEST_MS } from './in-time.ts';

/** Requests that read much, of one kind, at once: each may keep a connection for long, and issuing needs one, too. */
const AT_ONCE = 3;

/** Runs what a request asks of Postgres when its turn has come, unless nobody waits for it any more. */
export type InTurn = <T>(c: Context, run: () => Promise<T>) => Promise<T>;

/**
 * Lets a few requests of one kind read at once; others wait, first come, first served.
 * @throws RefusedError `database_unavailable` when it takes too long
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
        // Who has left, or has heard that it takes too long, needs nothing.
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
