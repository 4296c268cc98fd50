import { type GrantRef, keys } from './keys.ts';
import type { RedisClient } from './script.ts';

/** What a pot allows and has given. */
export type PotFigures = {
  /** Undefined: unlimited. */
  readonly maxUses: number | undefined;
  readonly used: number;
  readonly costLimitMicrousd: number | undefined;
  readonly settledMicrousd: number;
  readonly heldMicrousd: number;
  /** Undefined: as many as come. */
  readonly callsPerMinute: number | undefined;
};

/** The live figures of these pots, in the order of `potIds`; undefined for one that Redis does not know. */
export function readFigures(
  redis: RedisClient,
  { partition, potIds }: Pick<GrantRef, 'partition' | 'potIds'>,
): Promise<(PotFigures | undefined)[]> {
  return Promise.all(potIds.map((id) => readPot(redis, keys.pot(partition, id))));
}

async function readPot(redis: RedisClient, key: string): Promise<PotFigures | undefined> {
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
