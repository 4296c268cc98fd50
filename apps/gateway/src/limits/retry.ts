import type { GrantRef, RedisClient } from '@presign/limits';
import type { Waiting } from './waiting.ts';

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1_000;

/**
 * How long a call's settle is tried: this gateway alone knows its usage. The refund of an unanswered admission is
 * retried for the same time, because Redis may count the call once it resumes.
 */
export const OUTAGE_MS = 3_600_000;
/** A closing gateway retries for at most this time. */
const CLOSING_MS = 60_000;

/** Everything that is needed to repeat a script. */
export type RetryDeps = {
  readonly redis: RedisClient;
  readonly doubts: Doubts;
  readonly waiting: Waiting;
  readonly closing: AbortSignal;
};

/** A script that is retried until Redis answers. */
type Repeated<T> = {
  readonly run: () => Promise<T>;
  readonly giveUpMs: number;
  /** Memory that it takes while it waits. */
  readonly bytes: number;
};

/**
 * Runs a Redis script again until Redis answers. Waits 50 ms before the second try, twice as long before each further one, and at most 1 s,
 * or until Redis is connected again. Only for scripts that change nothing when they run a second time. From the first failure on, the
 * grant's budgets are marked uncertain. The script is not tried without a connection.
 * @returns the result of the script
 * @throws the last error, when the next try would be later than `giveUpMs` after the first, or when others need the memory of this retry
 */
export async function retry<T>(
  { redis, doubts, waiting, closing }: RetryDeps,
  { budgetIds }: Pick<GrantRef, 'budgetIds'>,
  { run, giveUpMs, bytes }: Repeated<T>,
): Promise<T> {
  const beganMs = Date.now();
  let lastError: unknown;
  let isDropped = false;
  let end: (() => void) | undefined;
  const wait = () => {
    const clear = doubts.raise(budgetIds);
    const leave = waiting.add(bytes, () => {
      isDropped = true;
    });
    return () => {
      clear();
      leave();
    };
  };
  try {
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      try {
        if (lastError === undefined || !isAway(redis)) return await run();
      } catch (error) {
        lastError = error;
        end ??= wait();
      }
      const longestMs = closing.aborted ? Math.min(giveUpMs, CLOSING_MS) : giveUpMs;
      if (isDropped || Date.now() + waitMs > beganMs + longestMs) throw lastError;
      await connectedOr(redis, waitMs);
    }
  } finally {
    end?.();
  }
}

/** Whether a client has no connection. Otherwise thousands of waiting scripts would each cause an error a second. */
const isAway = ({ status }: RedisClient) => status !== undefined && status !== 'ready';

/** Resolves after this many milliseconds, or when Redis reconnects. The retry then runs before new calls. */
function connectedOr(redis: RedisClient, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      redis.off('ready', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    redis.on('ready', done);
  });
}

/** Budgets for which Redis may count too much, because a refund of this gateway is still pending. A limit that looks reached may not be. */
export type Doubts = {
  /** Returns a function that ends the uncertainty. */
  readonly raise: (budgetIds: readonly string[]) => () => void;
  readonly touch: (budgetIds: readonly string[]) => boolean;
};

export function createDoubts(): Doubts {
  const counts = new Map<string, number>();
  const add = (budgetIds: readonly string[], one: 1 | -1) => {
    for (const id of budgetIds) {
      const count = (counts.get(id) ?? 0) + one;
      if (count > 0) counts.set(id, count);
      else counts.delete(id);
    }
  };
  return {
    raise: (budgetIds) => {
      add(budgetIds, 1);
      return () => add(budgetIds, -1);
    },
    touch: (budgetIds) => counts.size > 0 && budgetIds.some((id) => counts.has(id)),
  };
}
