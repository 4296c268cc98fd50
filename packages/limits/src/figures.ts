import { type GrantRef, keys } from './keys.ts';
import type { RedisClient } from './script.ts';

/** What a budget allows and has given. */
export type BudgetFigures = {
  /** Undefined: unlimited. */
  readonly maxUses: number | undefined;
  readonly used: number;
  readonly costLimitMicrousd: number | undefined;
  readonly settledMicrousd: number;
  readonly heldMicrousd: number;
  /** Undefined: as many as come. */
  readonly callsPerMinute: number | undefined;
};

/** The live figures of these budgets, in the order of `budgetIds`; undefined for one that Redis does not know. */
export function readFigures(
  redis: RedisClient,
  { partition, budgetIds }: Pick<GrantRef, 'partition' | 'budgetIds'>,
): Promise<(BudgetFigures | undefined)[]> {
  return Promise.all(budgetIds.map((id) => readBudget(redis, keys.budget(partition, id))));
}

async function readBudget(redis: RedisClient, key: string): Promise<BudgetFigures | undefined> {
  const fields = await redis.hmget(key, 'max_uses', 'used', 'cost_limit', 'settled', 'held', 'per_minute');
  const [maxUses, used, costLimit, settled, held, perMinute = -1] = fields.map(Number);
  if (fields[0] === null || maxUses === undefined || costLimit === undefined) return undefined;
  return {
    maxUses: maxUses < 0 ? undefined : maxUses,
    used: used ?? 0,
    costLimitMicrousd: costLimit < 0 ? undefined : costLimit,
    settledMicrousd: settled ?? 0,
    heldMicrousd: held ?? 0,
    callsPerMinute: perMinute < 0 ? undefined : perMinute,
  };
}
