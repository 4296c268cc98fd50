import type { RedisClient } from './redis.ts';

/** Uses up a one-time value, for this long. Returns whether it was still unused. Throws what ioredis throws. */
export const takeOnce = async (redis: RedisClient, key: string, forMs: number): Promise<boolean> =>
  (await redis.set(key, '1', 'PX', forMs, 'NX')) === 'OK';

/** Makes it usable again. Throws what ioredis throws. */
export async function giveOnce(redis: RedisClient, key: string): Promise<void> {
  await redis.del(key);
}
