import { addRefusals, type RedisClient } from '@presign/limits';
import { type ErrorCode, homePartition, REFUSAL_DAYS } from '@presign/schema';

/** How many calls of each account were refused, by code. The figures are for people to look at: nothing is decided by them. */
export type RefusalCounts = {
  /**
   * Counts a refused call. It only adds to a number in memory.
   * @param name of the field, kind or model that it was refused for
   */
  readonly count: (accountId: string, code: ErrorCode, name?: string) => void;
  /** Writes what is not written yet. */
  readonly close: () => Promise<void>;
};

const EVERY_MS = 1_000;
/** Accounts that are counted between two writes. The refusals of further ones are not counted. */
const ACCOUNTS_MAX = 1_000;
/** Codes and names of an account between two writes. Further names count as `other`. */
const NAMES_MAX = 50;
/** A day longer than they are read, because a day may end after its last refusal. */
const KEPT_SECONDS = (REFUSAL_DAYS + 1) * 86_400;

/**
 * Adds up refused calls, and writes the sums to Redis once a second in the background: one transaction for each account. Sums that
 * Redis does not take are gone, as are those of the last second before a kill -9.
 */
export function countRefusals(redis: RedisClient, now: () => number): RefusalCounts {
  const waiting = new Map<string, Map<string, number>>();
  let timer: NodeJS.Timeout | undefined;
  const write = async () => {
    clearTimeout(timer);
    timer = undefined;
    const day = new Date(now()).toISOString().slice(0, 10);
    const sums = Array.from(waiting, ([accountId, calls]) => ({ accountId, day, calls }));
    waiting.clear();
    const add = (sum: (typeof sums)[number]) =>
      addRefusals(redis, homePartition(sum.accountId), sum, KEPT_SECONDS);
    await Promise.allSettled(sums.map(add));
  };
  return {
    count: (accountId, code, name) => {
      const calls = waiting.get(accountId) ?? new Map<string, number>();
      if (calls.size === 0 && waiting.size >= ACCOUNTS_MAX) return;
      const add = (entry: string) => calls.set(entry, (calls.get(entry) ?? 0) + 1);
      add(code);
      if (name !== undefined) {
        const named = `${code} ${name}`;
        add(calls.has(named) || calls.size < NAMES_MAX ? named : `${code} other`);
      }
      waiting.set(accountId, calls);
      timer ??= setTimeout(write, EVERY_MS).unref();
    },
    close: write,
  };
}
