import { RefusedError } from '@presign/schema';
import type { Context } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';
import { CallerLeft, leavingOf } from './caller-left.ts';
import { DATABASE_UNAVAILABLE } from './errors.ts';

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

/**
 * Runs the queries of a request when its turn has come, unless its caller has left.
 * @param run gets a function that says whether the request of another account waits for the turn
 */
export type InTurn = <T>(c: Context<IssuerEnv>, run: (isWanted: () => boolean) => Promise<T>) => Promise<T>;

type Account = { reading: number; readonly waiting: (() => void)[] };

/**
 * Makes a queue for requests of one kind: `AT_ONCE` of them read at once, and `atOnceEach` of one account. The accounts that
 * wait take turns, and the requests of one come first in, first out.
 * @returns a function that throws RefusedError `database_unavailable` after `longestMs`, and CallerLeft once the caller has left
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
  const takeTurn = (id: string, leaving: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const account = accounts.get(id) ?? { reading: 0, waiting: [] };
      const start = () => {
        leaving.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        account.waiting.splice(account.waiting.indexOf(start), 1);
        forget(id, account);
        reject(new CallerLeft());
      };
      account.waiting.push(start);
      accounts.set(id, account);
      leaving.addEventListener('abort', leave, { once: true });
      startNext();
    });
  const forget = (id: string, { reading, waiting }: Account) => {
    if (reading === 0 && waiting.length === 0) accounts.delete(id);
  };
  const passOn = (id: string) => {
    free++;
    const account = accounts.get(id);
    if (account) {
      account.reading--;
      forget(id, account);
    }
    startNext();
  };
  /** Whether another account could read if this one did not. */
  const isWantedBy = (own: string) =>
    Array.from(accounts).some(
      ([id, { reading, waiting }]) => id !== own && waiting.length > 0 && reading < atOnceEach,
    );
  return (c, run) => {
    const until = performance.now() + longestMs;
    const turn = async () => {
      const { accountId } = c.get('apiKey');
      const leaving = leavingOf(c);
      if (leaving.aborted) throw new CallerLeft();
      await takeTurn(accountId, leaving);
      try {
        // inTime has already answered for this request.
        if (performance.now() >= until) throw new RefusedError(DATABASE_UNAVAILABLE);
        return await run(() => isWantedBy(accountId));
      } finally {
        passOn(accountId);
      }
    };
    return inTime(turn(), longestMs);
  };
}
