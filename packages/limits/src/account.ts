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

/** Refused calls of an account on a day of UTC, by code. */
export type Refusals = {
  readonly accountId: string;
  /** `2026-01-31` */
  readonly day: string;
  /** By code, and by code and name with a space between them. The first has all calls, the second those that have a name. */
  readonly calls: ReadonlyMap<string, number>;
};

/**
 * Adds refused calls to those that were counted on their day.
 * @param keptSeconds how long the day is kept from now on. Throws what ioredis throws
 */
export async function addRefusals(
  redis: RedisClient,
  partition: number,
  { accountId, day, calls }: Refusals,
  keptSeconds: number,
): Promise<void> {
  const key = keys.refusals(partition, accountId, day);
  const isFull = (await redis.hlen(key)) >= ENTRIES_MAX;
  const adding = redis.multi();
  for (const [entry, more] of calls) adding.hincrby(key, isFull ? withoutName(entry) : entry, more);
  await adding.expire(key, keptSeconds).exec();
}

/** Holders choose names, so a day with so many entries gets no further names. */
const ENTRIES_MAX = 200;

const withoutName = (entry: string): string => (entry.includes(' ') ? `${entry.split(' ', 1)} other` : entry);

/** Reads the refused calls of an account on these days, in their order. Throws what ioredis throws. */
export const readRefusals = (
  redis: RedisClient,
  partition: number,
  accountId: string,
  days: readonly string[],
): Promise<Refusals[]> =>
  Promise.all(
    days.map(async (day) => {
      const found = await redis.hgetall(keys.refusals(partition, accountId, day));
      return { accountId, day, calls: new Map(Object.entries(found).map(([code, n]) => [code, Number(n)])) };
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
