import { type GrantRef, keys } from './keys.ts';
import type { RedisClient } from './redis.ts';

/** A budget as Redis has it. */
export type BudgetFigures = {
  /** Undefined: unlimited. */
  readonly maxUses: number | undefined;
  readonly used: number;
  readonly costLimitMicrousd: number | undefined;
  readonly settledMicrousd: number;
  readonly heldMicrousd: number;
  /** Undefined: no rate limit. */
  readonly callsPerMinute: number | undefined;
  /** Undefined: unlimited. */
  readonly concurrentCalls: number | undefined;
  /** Undefined: no rate limit. */
  readonly tokensPerMinute: number | undefined;
  /** Calls under way. Only counted where they are limited. */
  readonly activeCalls: number;
  /** How the last call failed, as the JSON that `settle` stored. Undefined if it did not fail. */
  readonly lastCall: string | undefined;
};

/**
 * Reads the live figures of these budgets.
 * @returns them in the order of `budgetIds`; undefined for a budget that is not open in the epoch of its partition: Redis
 *   does not know it, or has its figures from before a loss. Throws what ioredis throws.
 */
export async function readFigures(
  redis: RedisClient,
  { partition, budgetIds }: Pick<GrantRef, 'partition' | 'budgetIds'>,
): Promise<(BudgetFigures | undefined)[]> {
  // Sent first, so that figures of this epoch were those of the moment if a new epoch begins in between.
  const asked = redis.hget(keys.partition(partition), 'epoch');
  const read = budgetIds.map((id) => readBudget(redis, keys.budget(partition, id), asked));
  return Promise.all(read);
}

const FIGURES =
  'epoch max_uses used cost_limit settled held per_minute concurrent active last_call token_rate'.split(' ');

async function readBudget(
  redis: RedisClient,
  key: string,
  asked: Promise<string | null>,
): Promise<BudgetFigures | undefined> {
  const [epochNow, found] = await Promise.all([asked, redis.hmget(key, ...FIGURES)]);
  const [epoch, maxUses, used, costLimit, settled, held, perMinute, concurrent, active, lastCall, tokenRate] =
    found;
  if (!maxUses || !costLimit || epoch !== epochNow) return undefined;
  return {
    maxUses: limit(maxUses),
    used: Number(used),
    costLimitMicrousd: limit(costLimit),
    settledMicrousd: Number(settled),
    heldMicrousd: Number(held),
    callsPerMinute: limit(perMinute ?? '-1'),
    concurrentCalls: limit(concurrent ?? '-1'),
    tokensPerMinute: limit(tokenRate ?? '-1'),
    activeCalls: Number(active ?? 0),
    lastCall: lastCall ?? undefined,
  };
}

const limit = (text: string) => (Number(text) < 0 ? undefined : Number(text));
