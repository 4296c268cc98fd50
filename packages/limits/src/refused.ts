import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { flag } from './reply.ts';
import { script } from './script.ts';

const refuseScript = script('refuse', {
  keys: ['refused'],
  args: ['most'],
  each: { args: ['entry'] },
  reply: flag,
});

/** An entry of the stream of refused calls, and its text. */
export type Refused = { readonly id: string; readonly entry: string };

/** The number of entries of a full stream. Further entries wait at their gateway. */
const STREAM_MAX = 1_000;

/** Adds refused calls to the stream of their partition. Returns false if it is full. Throws what ioredis throws. */
export const addRefused = (
  redis: RedisClient,
  partition: number,
  entries: readonly string[],
): Promise<boolean> =>
  refuseScript.run(redis, {
    keys: { refused: keys.refused(partition) },
    args: { most: STREAM_MAX },
    each: entries.map((entry) => ({ entry })),
  });

/** Which of the partitions 0 to `partitions` - 1 have refused calls. Throws what ioredis throws. */
export async function withRefused(redis: RedisClient, partitions: number): Promise<number[]> {
  const all = Array.from({ length: partitions }, (_, at) => at);
  const lengths = await Promise.all(all.map((at) => redis.xlen(keys.refused(at))));
  return all.filter((at) => (lengths[at] ?? 0) > 0);
}

/** Reads the first entries after an id, at most so many. Throws what ioredis throws. */
export async function readRefused(
  redis: RedisClient,
  partition: number,
  afterId: string,
  most: number,
): Promise<Refused[]> {
  const found = await redis.xrange(keys.refused(partition), `(${afterId}`, '+', 'COUNT', most);
  return found.map(([id, [, entry = '']]) => ({ id, entry }));
}

/** Drops the entries up to an id. Throws what ioredis throws. */
export async function trimRefused(redis: RedisClient, partition: number, lastId: string): Promise<void> {
  const [ms, sequence] = lastId.split('-');
  // MINID keeps its own id.
  await redis.xtrim(keys.refused(partition), 'MINID', `${ms}-${Number(sequence) + 1}`);
}
