import type { RedisClient } from './redis.ts';

/** Takes something that exists once, for so long. Returns whether it was there. Throws what ioredis throws. */
export const takeOnce = async (redis: RedisClient, key: string, forMs: number): Promise<boolean> =>
  (await redis.set(key, '1', 'PX', forMs, 'NX')) === 'OK';

/** Makes it possible to take it again. Throws what ioredis throws. */
export async function giveOnce(redis: RedisClient, key: string): Promise<void> {
  await redis.del(key);
}
