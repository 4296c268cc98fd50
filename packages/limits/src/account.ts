import { inEachPartition, TRACE_MS } from './credential.ts';
import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { flag } from './reply.ts';
import { script } from './script.ts';

const accountScript = script('account', {
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
