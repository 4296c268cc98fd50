import type { RedisClient } from '@presign/limits';
import { Cluster } from 'ioredis';

/** Names of all keys of this form, of every node of a Cluster. */
export async function redisKeys(redis: RedisClient, pattern: string): Promise<string[]> {
  if (!(redis instanceof Cluster)) return redis.keys(pattern);
  return (await Promise.all(redis.nodes('master').map((node) => node.keys(pattern)))).flat();
}
