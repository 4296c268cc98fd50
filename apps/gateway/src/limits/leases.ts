import { type RedisClient, renew, sweep } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import type { Logger } from 'pino';

/** The holds of this gateway's calls under way. */
export type Leases = {
  readonly add: (partition: number, holdId: string) => void;
  readonly remove: (partition: number, holdId: string) => void;
  /** Stops renewing and sweeping. */
  readonly close: () => void;
};

type Deps = { readonly redis: RedisClient; readonly leaseMs: number; readonly log: Logger };

/**
 * Renews the leases of calls under way, and sweeps the holds that dead gateways left, with one script per partition.
 * It renews every third and sweeps every sixth of a lease, so that one missed turn ends no lease.
 */
export function startLeases(deps: Deps): Leases {
  const held = new Map<number, Set<string>>();
  const renewing = setInterval(() => void renewAll(deps, held), deps.leaseMs / 3);
  const sweeping = setInterval(() => void sweepAll(deps), deps.leaseMs / 6);
  return {
    add: (partition, holdId) => {
      const holds = held.get(partition);
      if (holds) holds.add(holdId);
      else held.set(partition, new Set([holdId]));
    },
    remove: (partition, holdId) => {
      held.get(partition)?.delete(holdId);
    },
    close: () => {
      clearInterval(renewing);
      clearInterval(sweeping);
    },
  };
}

async function renewAll(
  { redis, leaseMs, log }: Deps,
  held: ReadonlyMap<number, ReadonlySet<string>>,
): Promise<void> {
  const turns = [...held].filter(([, holds]) => holds.size > 0);
  const done = await Promise.allSettled(turns.map(([at, holds]) => renew(redis, at, leaseMs, [...holds])));
  const failed = done.filter((each) => each.status === 'rejected').length;
  if (failed > 0) log.warn({ partitions: failed }, 'leases not renewed');
}

async function sweepAll({ redis, log }: Deps): Promise<void> {
  const partitions = Array.from({ length: PARTITIONS }, (_, id) => id);
  const done = await Promise.allSettled(partitions.map((id) => sweep(redis, id)));
  const expired = done.reduce((sum, each) => sum + (each.status === 'fulfilled' ? each.value : 0), 0);
  if (expired > 0) log.warn({ holds: expired }, 'leases ran out and were settled in full');
}
