import { type Refusal, RefusedError } from '@presign/schema';

/** What a request hears while Postgres cannot be asked. */
export const DATABASE_UNAVAILABLE: Refusal = { code: 'database_unavailable', retryAfterSeconds: 1 };

/** More than a request waits for another of its `Idempotency-Key`, less than clients wait for an answer. */
export const LONGEST_MS = 8_000;

/**
 * Waits for Postgres, but not for ever: a server that hangs, or a network that swallows, never says no.
 * @throws RefusedError `database_unavailable` when it takes too long; what was asked may still come about
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
