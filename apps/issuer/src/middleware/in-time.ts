import { RefusedError } from '@presign/schema';
import type { Context } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';
import { CallerLeft, leavingOf } from './caller-left.ts';
import { DATABASE_UNAVAILABLE } from './errors.ts';

/** Longer than a request waits for an earlier one with its `Idempotency-Key`, and shorter than clients wait for an answer. */
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

/** Requests of one expensive kind that read at once. */
const AT_ONCE = 3;
/** The same for one account, so that its reports leave room for those of others. */
const AT_ONCE_EACH = 2;
/** The same for all kinds together. Each may keep a connection for long, and issuing needs one of the pool's 10 connections, too. */
const ALL_AT_ONCE = 9;
const ALL_AT_ONCE_EACH = 6;

/** The turn of a request. */
export type Turn = {
  /** Whether another account's request waits for the turn. */
  readonly isWanted: () => boolean;
  /** Throws if the caller no longer waits for the answer. Called between two queries, so that the second one does not run in vain. */
  readonly goOn: () => void;
};

/** Runs the queries of a request in its turn, unless its caller has disconnected. */
export type InTurn = <T>(c: Context<IssuerEnv>, run: (turn: Turn) => Promise<T>) => Promise<T>;

/**
 * Creates a queue for requests of one kind. `AT_ONCE` requests read at once, and `atOnceEach` of one account.
 * @returns a function that throws RefusedError `database_unavailable` after `longestMs`, and CallerLeft once the caller has disconnected
 */
export function inTurn(longestMs = LONGEST_MS, atOnceEach = AT_ONCE_EACH): InTurn {
  const queues = [queue(AT_ONCE, atOnceEach), OF_ALL_KINDS];
  return (c, run) => {
    const until = performance.now() + longestMs;
    const turn = async () => {
      const { accountId } = c.get('apiKey');
      const leaving = leavingOf(c);
      const goOn = () => {
        if (leaving.aborted) throw new CallerLeft();
        // inTime has already answered for this request.
        if (performance.now() >= until) throw new RefusedError(DATABASE_UNAVAILABLE);
      };
      const taken: Queue[] = [];
      try {
        for (const each of queues) {
          goOn();
          await each.take(accountId, leaving);
          taken.push(each);
        }
        goOn();
        return await run({ isWanted: () => queues.some((each) => each.isWantedBy(accountId)), goOn });
      } finally {
        for (const each of taken) each.passOn(accountId);
      }
    };
    return inTime(turn(), longestMs);
  };
}

type Queue = {
  /** Waits for a turn of the account. Throws CallerLeft once the caller has disconnected. */
  readonly take: (id: string, leaving: AbortSignal) => Promise<void>;
  readonly passOn: (id: string) => void;
  /** Whether another account waits for this one's turn. */
  readonly isWantedBy: (id: string) => boolean;
};

type Account = { reading: number; readonly waiting: (() => void)[] };

/**
 * `atOnce` read at once, and `atOnceEach` of one account. Waiting accounts take turns, and the requests of one account are served in order.
 */
function queue(atOnce: number, atOnceEach: number): Queue {
  let free = atOnce;
  /** Accounts with requests, in the order of their turns. */
  const accounts = new Map<string, Account>();
  const startNext = () => {
    for (const [id, account] of accounts) {
      if (free === 0) return;
      const start = account.reading < atOnceEach ? account.waiting.shift() : undefined;
      if (!start) continue;
      free--;
      account.reading++;
      // Moves to the end, where the loop visits it again.
      accounts.delete(id);
      accounts.set(id, account);
      start();
    }
  };
  const forget = (id: string, { reading, waiting }: Account) => {
    if (reading === 0 && waiting.length === 0) accounts.delete(id);
  };
  return {
    take: (id, leaving) =>
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
      }),
    passOn: (id) => {
      free++;
      const account = accounts.get(id);
      if (account) {
        account.reading--;
        forget(id, account);
      }
      startNext();
    },
    isWantedBy: (own) =>
      Array.from(accounts).some(
        ([id, { reading, waiting }]) => id !== own && waiting.length > 0 && reading < atOnceEach,
      ),
  };
}

/** A process has one pool of connections. */
const OF_ALL_KINDS = queue(ALL_AT_ONCE, ALL_AT_ONCE_EACH);
