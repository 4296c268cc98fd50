import type { RateRefusal } from '@presign/schema';
import { inEachPartition, TRACE_MS } from './credential.ts';
import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { flag, number, oneOf } from './reply.ts';
import { script } from './script.ts';

const accountScript = script('change/account', {
  keys: ['account'],
  args: ['version', 'suspended', 'leastMs'],
  reply: flag,
});

/** Whether an account is suspended, as Postgres has committed it. */
export type AccountState = {
  readonly id: string;
  /** Counts changes. A state of an earlier version than that in Redis changes nothing. */
  readonly version: number;
  readonly isSuspended: boolean;
};

/**
 * Makes every gateway refuse, or serve again, the calls of an account from its next call on, in all these partitions.
 * Throws what ioredis throws when a partition did not answer; the whole may be repeated.
 */
export const setAccountState = (
  redis: RedisClient,
  { id, version, isSuspended }: AccountState,
  partitions: readonly number[],
): Promise<void> =>
  inEachPartition(partitions, (at) =>
    accountScript.run(redis, {
      keys: { account: keys.account(at, id) },
      args: { version, suspended: isSuspended ? 1 : 0, leastMs: TRACE_MS },
    }),
  );

const rateLimitScript = script('rate-limit', {
  keys: ['rate'],
  args: ['perMinute'],
  reply: oneOf({ counted: { left: number, resetMs: number, waitMs: number } }),
});

/**
 * Counts one request of `id`, unless it must wait. Answers state its limit as they state that of calls.
 * @returns `waitMs` 0 when it passes. Throws what ioredis throws.
 */
export async function countRequest(
  redis: RedisClient,
  partition: number,
  id: string,
  perMinute: number,
): Promise<RateRefusal> {
  const { left, resetMs, waitMs } = await rateLimitScript.run(redis, {
    keys: { rate: keys.rateLimit(partition, id) },
    args: { perMinute },
  });
  return { rateLimit: { name: 'calls_per_minute', limit: perMinute, left, resetMs }, waitMs };
}
