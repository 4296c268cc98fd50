import { type GrantRef, keys } from './keys.ts';
import type { RedisClient } from './redis.ts';

/** A budget as Postgres has it. */
export type BudgetState = {
  readonly id: string;
  /** Null: unlimited. */
  readonly maxUses: number | null;
  readonly used: number;
  /** Null: no limit. */
  readonly costLimitMicrousd: number | null;
  readonly settledMicrousd: number;
  /** Null: no rate limit. */
  readonly callsPerMinute: number | null;
  /** Whether it is of no use once the grant has expired. */
  readonly endsWithGrant: boolean;
};

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
  /** How the last call failed, as the JSON that `settle` stored. Undefined if it did not fail. */
  readonly lastCall: string | undefined;
};

/**
 * Reads the live figures of these budgets.
 * @returns them in the order of `budgetIds`; undefined for a budget that Redis does not know. Throws what ioredis throws.
 */
export function readFigures(
  redis: RedisClient,
  { partition, budgetIds }: Pick<GrantRef, 'partition' | 'budgetIds'>,
): Promise<(BudgetFigures | undefined)[]> {
  return Promise.all(budgetIds.map((id) => readBudget(redis, keys.budget(partition, id))));
}

async function readBudget(redis: RedisClient, key: string): Promise<BudgetFigures | undefined> {
  const fields = ['max_uses', 'used', 'cost_limit', 'settled', 'held', 'per_minute', 'last_call'];
  const [maxUses, used, costLimit, settled, held, perMinute, lastCall] = await redis.hmget(key, ...fields);
  if (!maxUses || !costLimit) return undefined;
  return {
    maxUses: limit(maxUses),
    used: Number(used),
    costLimitMicrousd: limit(costLimit),
    settledMicrousd: Number(settled),
    heldMicrousd: Number(held),
    callsPerMinute: limit(perMinute ?? '-1'),
    lastCall: lastCall ?? undefined,
  };
}

const limit = (text: string) => (Number(text) < 0 ? undefined : Number(text));
