import { keys, type RedisClient } from '../src/index.ts';
import { keysOf, loseAll } from './redis.ts';

/** A copy of a partition's keys, as a replica or a saved file has it. */
export type Snapshot = readonly ((redis: RedisClient) => Promise<unknown>)[];

/** Copies a partition. Not atomic: nothing else may write to it meanwhile. */
export async function takeSnapshot(redis: RedisClient, partition: number): Promise<Snapshot> {
  const found = await keysOf(redis, partition);
  return Promise.all(found.map((key) => copyKey(redis, key)));
}

/** Puts a partition back to an older copy, served by another Redis process, as after a failover. */
export async function putBack(redis: RedisClient, partition: number, snapshot: Snapshot): Promise<void> {
  await loseAll(redis, partition);
  for (const restore of snapshot) await restore(redis);
  await restarted(redis, partition);
}

/** Makes the partition look as if its epoch began in another process; nothing is lost. */
export async function restarted(redis: RedisClient, partition: number): Promise<void> {
  await redis.hset(keys.partition(partition), 'run', 'another');
}

async function copyKey(redis: RedisClient, key: string): Promise<Snapshot[number]> {
  const type = await redis.type(key);
  if (type === 'hash') return copyHash(redis, key);
  if (type === 'zset') {
    const flat = await redis.zrange(key, '0', '-1', 'WITHSCORES');
    const pairs = flat.map((_, i) => flat[i % 2 === 0 ? i + 1 : i - 1] ?? '');
    return (to) => to.zadd(key, ...pairs);
  }
  if (type === 'string') {
    const [text, ends] = await Promise.all([redis.get(key), redis.pexpiretime(key)]);
    return (to) => to.set(key, text ?? '', 'PXAT', ends);
  }
  const entries = await redis.xrange(key, '-', '+');
  return async (to) => {
    for (const [id, fields] of entries) await to.xadd(key, id, ...fields);
  };
}

async function copyHash(redis: RedisClient, key: string): Promise<Snapshot[number]> {
  const [fields, ends] = await Promise.all([redis.hgetall(key), redis.pexpiretime(key)]);
  return async (to) => {
    await to.hset(key, fields);
    if (ends > 0) await to.pexpireat(key, String(ends));
  };
}
