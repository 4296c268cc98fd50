import { keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';
import { expire } from './settle.ts';

const runRenew = script('renew');
const runDue = script('due');
/** How many holds of one partition a sweep settles at most before it turns to the next. */
const SWEEP_MOST = 100;

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
  const due = (await runDue(redis, [keys.leases(partition)], [SWEEP_MOST])) as string[];
  const expired = await Promise.all(due.map((holdId) => expire(redis, partition, holdId)));
  return expired.filter(Boolean).length;
}
