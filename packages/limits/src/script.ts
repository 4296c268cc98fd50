import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Cluster, type Redis } from 'ioredis';

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
    writeTogether(redis);
    try {
      return (await redis.evalsha(sha, keys.length, ...keys, ...args)) as Reply;
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return (await redis.eval(text, keys.length, ...keys, ...args)) as Reply;
    }
  };
}

/** Clients that write nothing before this turn of the event loop ends. */
const heldBack = new WeakSet<RedisClient>();

/**
 * Lets the scripts of all calls that this turn of the event loop brought leave in one write: one write for each costs
 * more than everything else of a script's way (`bench/proxy.ts`: 453 µs of CPU a call, 367 so).
 */
function writeTogether(redis: RedisClient): void {
  if (heldBack.has(redis)) return;
  heldBack.add(redis);
  const connections = redis instanceof Cluster ? redis.nodes('master') : [redis];
  // While it connects, a client has no stream.
  const streams = connections.flatMap(({ stream }) => (stream as Redis['stream'] | undefined) ?? []);
  for (const stream of streams) stream.cork();
  setImmediate(() => {
    heldBack.delete(redis);
    for (const stream of streams) stream.uncork();
  });
}
