import { keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';
import { expire } from './settle.ts';

const runRenew = script('renew');
const runDue = script('due');
/** Holds settled at once: a few, so that calls are not kept waiting behind them. */
const SWEEP_BATCH = 100;

/** Puts off the end of one partition's leases; returns how many are still held. */
export async function renew(
  redis: RedisClient,
  partition: number,
  leaseMs: number,
  holdIds: readonly string[],
): Promise<number> {
  return (await runRenew(redis, [keys.leases(partition)], [leaseMs, ...holdIds])) as number;
}

/** Settles in full the holds of one partition whose gateway let the lease run out; returns how many. */
export async function sweep(redis: RedisClient, partition: number): Promise<number> {
  for (let count = 0; ; ) {
    const due = (await runDue(redis, [keys.leases(partition)], [SWEEP_BATCH])) as string[];
    const expired = await Promise.all(due.map((holdId) => expire(redis, partition, holdId)));
    count += expired.filter(Boolean).length;
    if (due.length < SWEEP_BATCH) return count;
  }
}
