import type { GrantRef, RedisClient } from '@presign/limits';

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1_000;

/** How long this gateway tries to give back a call whose admission was never answered: Redis may count it once it thaws. */
export const UNHEARD_MS = 3_600_000;
/** A closing gateway tries no longer than this. */
const CLOSING_MS = 60_000;

type Deps = { readonly redis: RedisClient; readonly doubts: Doubts; readonly closing: AbortSignal };

/**
 * Runs a Redis script again until Redis answers. Waits 50 ms before the second try, twice as long before each further
 * one, and at most 1 s, or until Redis is connected again. Only for scripts that change nothing when they run a second
 * time. From the first failure on, the grant's budgets are in doubt.
 * @returns what the script returned. Throws the last error when the next try would be later than `giveUpMs` after the first.
 */
export async function retry<T>(
  { redis, doubts, closing }: Deps,
  { budgetIds }: Pick<GrantRef, 'budgetIds'>,
  run: () => Promise<T>,
  giveUpMs: number,
): Promise<T> {
  const beganMs = Date.now();
  let clear: (() => void) | undefined;
  try {
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      try {
        return await run();
      } catch (error) {
        clear ??= doubts.raise(budgetIds);
        const longestMs = closing.aborted ? Math.min(giveUpMs, CLOSING_MS) : giveUpMs;
        if (Date.now() + wait > beganMs + longestMs) throw error;
        await connectedOr(redis, wait);
      }
    }
  } finally {
    clear?.();
  }
}

/** Resolves after so many milliseconds, or when Redis is connected again: then this try comes before new calls. */
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

/**
 * Budgets of which Redis may count too much, because this gateway has yet to give something back. A limit that
 * seems to be reached there may not be.
 */
export type Doubts = {
  /** Returns what ends this doubt. */
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
