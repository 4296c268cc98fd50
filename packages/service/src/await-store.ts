import { setTimeout as sleep } from 'node:timers/promises';
import { IAT_LEEWAY_SECONDS } from '@presign/schema';

/** How long a store may take at a start before the log says that it does not answer. */
export const STORE_WAIT_MS = 10_000;

const AGAIN_MS = 250;
const AGAIN_WHEN_LATE_MS = 2_000;

type Store = {
  readonly variable: 'DATABASE_URL' | 'REDIS_URL';
  /** The variable's value. */
  readonly url: string;
  readonly ask: () => PromiseLike<unknown>;
  /** Whether a repetition cannot succeed. */
  readonly isFinal?: (error: unknown) => boolean;
  readonly log: { error: (facts: object, line: string) => void };
};

/**
 * Asks a store until it answers, because a store may come up later than its services. After `STORE_WAIT_MS`, one log line
 * says that it does not answer. The wait does not keep a process alive.
 * @throws the error of `ask`, if that is final
 */
export async function awaitStore({ variable, url, ask, isFinal, log }: Store): Promise<void> {
  const lateAt = Date.now() + STORE_WAIT_MS;
  for (let logged = false; ; ) {
    try {
      await ask();
      return;
    } catch (error) {
      if (isFinal?.(error)) throw error;
      if (!logged && Date.now() >= lateAt) {
        log.error(causeOf(error), `${variable}: ${addressOf(url)} ${problemOf(error)}`);
        logged = true;
      }
    }
    await sleep(logged ? AGAIN_WHEN_LATE_MS : AGAIN_MS, undefined, { ref: false });
  }
}

/** The problem of a store, for people. Codes are those of the PostgreSQL manual, appendix A; Redis begins its message with one. */
export function problemOf(error: unknown): string {
  const { code, message } = causeOf(error);
  if (code === '3D000') return 'has no database of this name';
  if (code === '25006') return 'is read-only';
  if (code?.startsWith('28') || /^(NOAUTH|WRONGPASS|NOPERM)\b/.test(message)) return 'refuses the login';
  return /^(?!E|08|53|57|58)[0-9A-Z]{5}$/.test(code ?? '') ? 'refused' : 'does not answer';
}

/** Host and port in a store's URL, or all of them for a Cluster and for Sentinels. Never the user or the password. */
export function addressOf(url: string): string {
  if (URL.canParse(url)) return new URL(url).host;
  const place = url.slice(Math.max(url.lastIndexOf('@') + 1, url.indexOf('://') + 3));
  return place.split(/[/?#]/, 1)[0] ?? '';
}

/** Why something failed, in words for the log. */
export type Cause = { readonly error: string; readonly code?: string; readonly message: string };

/**
 * The innermost cause of an error. Its message is cut before a quotation or a second line, because a message may quote
 * what was sent.
 */
export function causeOf(error: unknown): Cause {
  const cause = innermost(error);
  if (!(cause instanceof Error)) return { error: 'unknown', message: '' };
  if (ABOUT_OPTIONS.test(cause.message))
    return { error: cause.name, message: 'there is no connection to Redis' };
  const [said = ''] = cause.message.split(/\n|(?:^|[\s:(=])["'`]/, 1);
  const code = 'code' in cause && typeof cause.code === 'string' ? { code: cause.code } : {};
  return { error: cause.name, ...code, message: said.slice(0, LONGEST_MESSAGE) };
}

const LONGEST_MESSAGE = 200;

/** Messages of ioredis without a connection, which name its options. */
const ABOUT_OPTIONS = /max retries per request|enableOfflineQueue/;

/** A name with several addresses fails with one error for each, and no message of its own (Node, `net.connect`). */
function innermost(error: unknown): unknown {
  if (error instanceof AggregateError && error.message === '') return innermost(error.errors[0]);
  return error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : error;
}

/** A problem of a store, of the price list or of the machine's clock, and its effect on a service. */
export type Problem = {
  /** A store, or another thing that the problem is about. */
  readonly store: 'postgres' | 'redis' | 'prices' | 'knowledge' | 'clock' | 'service';
  /** The rest of a sentence that begins with the store. */
  readonly problem: string;
  readonly effect: string;
};

/** Body of `GET /readyz`: 200 when ready, also with problems, else 503. */
export type Readiness = { readonly status: 'ready' | 'unready'; readonly problems: readonly Problem[] };

/** `/readyz` of a service that got SIGTERM. */
export const STOPPING: Problem = {
  store: 'service',
  problem: 'is stopping',
  effect: 'It serves on for SHUTDOWN_DRAIN_SECONDS. Send requests to another one.',
};

/**
 * The problem of a clock that is far from that of Redis, for `/readyz`. Its effect supposes that the other clocks agree with
 * Redis.
 * @param farMs how far the service is ahead of Redis; undefined if it is not far
 */
export function clockProblems(farMs: number | undefined, service: 'gateway' | 'issuer'): readonly Problem[] {
  if (farMs === undefined) return [];
  const seconds = Math.round(Math.abs(farMs) / 1_000);
  const isAhead = farMs > 0;
  const problem = `is ${seconds} seconds ${isAhead ? 'ahead of' : 'behind'} that of Redis`;
  const urls = service === 'gateway' ? 'URLs expire here' : 'New URLs expire';
  // A token looks older to a gateway that is ahead, and younger if its issuer is.
  if (isAhead === (service === 'gateway'))
    return [{ store: 'clock', problem, effect: `${urls} ${seconds} seconds early.` }];
  const refusedSeconds = seconds - IAT_LEEWAY_SECONDS;
  const refused =
    refusedSeconds > 0 ? ` In its first ${refusedSeconds} seconds, each gets 401 token_invalid.` : '';
  return [{ store: 'clock', problem, effect: `${urls} ${seconds} seconds late.${refused}` }];
}
