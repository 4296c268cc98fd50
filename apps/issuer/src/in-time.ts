import { RefusedError } from '@presign/schema';
import type { Context } from 'hono';
import type { IssuerEnv } from './deps.ts';
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

/** Requests of one expensive kind that read at once. Each may keep a connection for long, and issuing needs one, too. */
const AT_ONCE = 3;
/** Those of one account, so that its reports leave room for those of others. */
const AT_ONCE_EACH = 2;

/** Runs the queries of a request when its turn has come, unless its caller has left. */
export type InTurn = <T>(c: Context<IssuerEnv>, run: () => Promise<T>) => Promise<T>;

type Account = { reading: number; readonly waiting: (() => void)[] };

/**
 * Makes a queue for requests of one kind: `AT_ONCE` of them read at once, and `atOnceEach` of one account. The accounts that
 * wait take turns, and the requests of one come first in, first out.
 * @returns a function that throws RefusedError `database_unavailable` after `longestMs`
 */
export function inTurn(longestMs = LONGEST_MS, atOnceEach = AT_ONCE_EACH): InTurn {
  let free = AT_ONCE;
  /** Those with requests, in the order of their turns. */
  const accounts = new Map<string, Account>();
  const startNext = () => {
    for (const [id, account] of accounts) {
      if (free === 0) return;
      const start = account.reading < atOnceEach ? account.waiting.shift() : undefined;
      if (!start) continue;
      free--;
      account.reading++;
      // Moves behind all others, where the loop visits it again.
      accounts.delete(id);
      accounts.set(id, account);
      start();
    }
  };
  const takeTurn = (id: string) =>
    new Promise<void>((resolve) => {
      const account = accounts.get(id) ?? { reading: 0, waiting: [] };
      account.waiting.push(resolve);
      accounts.set(id, account);
      startNext();
    });
  const passOn = (id: string) => {
    free++;
    const account = accounts.get(id);
    if (account && --account.reading === 0 && account.waiting.length === 0) accounts.delete(id);
    startNext();
  };
  return (c, run) => {
    const until = performance.now() + longestMs;
    const turn = async () => {
      const { accountId } = c.get('apiKey');
      await takeTurn(accountId);
      try {
        // The caller has left, or inTime has already answered for this request.
        if (performance.now() >= until || c.req.raw.signal.aborted)
          throw new RefusedError(DATABASE_UNAVAILABLE);
        return await run();
      } finally {
        passOn(accountId);
      }
    };
    return inTime(turn(), longestMs);
  };
}
