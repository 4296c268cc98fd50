import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';

/** What Redis can do now. */
export type RedisHealth = {
  /** `refused`: it answers, but takes no writes, as at `maxmemory` or with a full disk. */
  readonly writes: 'taken' | 'read_only' | 'refused' | 'no_answer';
  /** Partitions that admit calls. */
  readonly open: number;
};

/** Asks Redis whether it takes writes, and how many of the partitions 0 to `partitions` - 1 are open. Never throws. */
export async function readHealth(redis: RedisClient, partitions: number): Promise<RedisHealth> {
  const all = Array.from({ length: partitions }, (_, at) => redis.hget(keys.partition(at), 'state'));
  const [writes, ...states] = await Promise.all([
    tryWrite(redis),
    ...all.map((asked) => asked.catch(() => null)),
  ]);
  return { writes, open: states.filter((state) => state === 'open').length };
}

const PROBE_MS = 60_000;

async function tryWrite(redis: RedisClient): Promise<RedisHealth['writes']> {
  try {
    await redis.set(keys.probe(), '1', 'PX', PROBE_MS);
    return 'taken';
  } catch (error) {
    // Redis' own errors begin with a word in capitals (Redis manual, RESP, simple errors).
    const [word = ''] = error instanceof Error ? error.message.split(' ', 1) : [];
    if (word === 'READONLY') return 'read_only';
    return /^[A-Z]{3,}$/.test(word) && word !== 'LOADING' ? 'refused' : 'no_answer';
  }
}
