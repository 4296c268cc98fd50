import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';

/** One Redis server (or Sentinel) or a Cluster. */
export type RedisClient = Redis | Cluster;

/** What a script answers: flat, or nested where it returns stream entries. */
export type Reply = string | number | null | Reply[];

/** Runs one script: a single round trip, all keys in one partition. */
export type Script = (
  redis: RedisClient,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<Reply>;

/**
 * Reads `lua/<name>.lua`; sends its SHA-1, and the text only to a server that has not seen it.
 * @param before names of files with functions that it uses
 */
export function script(name: string, ...before: readonly string[]): Script {
  const texts = [...before, name].map((file) =>
    readFileSync(new URL(`./lua/${file}.lua`, import.meta.url), 'utf8'),
  );
  const text = texts.join('');
  const sha = createHash('sha1').update(text).digest('hex');
  return async (redis, keys, args) => {
    try {
      return (await redis.evalsha(sha, keys.length, ...keys, ...args)) as Reply;
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return (await redis.eval(text, keys.length, ...keys, ...args)) as Reply;
    }
  };
}
