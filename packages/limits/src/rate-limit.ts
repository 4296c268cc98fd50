import type { RateRefusal } from '@presign/schema';
import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { number, oneOf } from './reply.ts';
import { script } from './script.ts';

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
