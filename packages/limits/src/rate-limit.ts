import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { number, oneOf } from './reply.ts';
import { script } from './script.ts';

const rateLimitScript = script('rate-limit', {
  keys: ['rate'],
  args: ['perMinute'],
  reply: oneOf({ counted: { left: number, resetMs: number, waitMs: number } }),
});

/** How much of a minute's calls is used up. */
export type RateLimit = {
  readonly perMinute: number;
  /** Calls that may be made at once. */
  readonly left: number;
  /** Milliseconds until all of a minute's calls may be made at once again. */
  readonly resetMs: number;
};

/**
 * Counts one request of `id`, unless it must wait.
 * @returns `waitMs` 0 when it passes. Throws what ioredis throws.
 */
export async function countRequest(
  redis: RedisClient,
  partition: number,
  id: string,
  perMinute: number,
): Promise<{ readonly rateLimit: RateLimit; readonly waitMs: number }> {
  const { left, resetMs, waitMs } = await rateLimitScript.run(redis, {
    keys: { rate: keys.rateLimit(partition, id) },
    args: { perMinute },
  });
  return { rateLimit: { perMinute, left, resetMs }, waitMs };
}
