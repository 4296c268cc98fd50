import { createHash } from 'node:crypto';
import { Cluster, type Redis } from 'ioredis';
import { compileScript, type Names } from './compile-script.ts';
import type { RedisClient } from './redis.ts';
import type { Raw, Reply } from './reply.ts';

type Value = string | number | undefined;
/** A part of the input: absent where the script declares none of its names. */
type Part<P extends string, N extends string, T> = [N] extends [never] ? unknown : { readonly [K in P]: T };

/** What a script takes, by name. An argument that is undefined is '' in Lua. */
type Input<K extends string, A extends string, EK extends string, EA extends string> = Part<
  'keys',
  K,
  Readonly<Record<K, string>>
> &
  Part<'args', A, Readonly<Record<A, Value>>> &
  Part<'each', EK | EA, readonly (Readonly<Record<EK, string>> & Readonly<Record<EA, Value>>)[]>;

type Loose = {
  readonly keys?: Readonly<Record<string, string>>;
  readonly args?: Readonly<Record<string, Value>>;
  readonly each?: readonly Readonly<Record<string, Value>>[];
};

type Places = [keys: number, ...(string | number)[]];

/** A Lua script: one round trip, all keys in one partition. */
export type Script<I, T> = {
  /** Sends the script's SHA-1, and its text only to a server that has not seen it. Throws what ioredis throws. */
  readonly run: (redis: RedisClient, input: I) => Promise<T>;
  readonly text: string;
  /** What EVAL and EVALSHA take after the script: the number of keys, KEYS, ARGV. */
  readonly place: (input: I) => Places;
};

/** Declares `lua/<name>.lua`: the names of its keys, of its arguments, and of a list's items, and what it returns. */
export function script<
  T,
  const K extends string = never,
  const A extends string = never,
  const EK extends string = never,
  const EA extends string = never,
>(
  name: string,
  declared: {
    readonly keys?: readonly K[];
    readonly args?: readonly A[];
    readonly each?: { readonly keys?: readonly EK[]; readonly args?: readonly EA[] };
    readonly reply: Reply<T>;
  },
): Script<Input<K, A, EK, EA>, T> {
  const { keys = [], args = [], each = {}, reply } = declared;
  const names = { keys, args, eachKeys: each.keys ?? [], eachArgs: each.args ?? [] };
  const text = compileScript(name, names, reply.kinds);
  const sha = createHash('sha1').update(text).digest('hex');
  const place = (input: Loose) => placeIn(names, input);
  const run = async (redis: RedisClient, input: Loose) =>
    reply.read(await send(redis, sha, text, place(input)));
  return { run, text, place } as Script<Input<K, A, EK, EA>, T>;
}

function placeIn(names: Names, { keys = {}, args = {}, each = [] }: Loose): Places {
  const places: Places = [names.keys.length + names.eachKeys.length * each.length];
  for (const key of names.keys) places.push(keys[key] ?? '');
  for (const item of each) for (const key of names.eachKeys) places.push(item[key] ?? '');
  for (const arg of names.args) places.push(args[arg] ?? '');
  for (const item of each) for (const arg of names.eachArgs) places.push(item[arg] ?? '');
  return places;
}

async function send(redis: RedisClient, sha: string, text: string, places: Places): Promise<Raw> {
  writeTogether(redis);
  try {
    return (await redis.evalsha(sha, ...places)) as Raw;
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return (await redis.eval(text, ...places)) as Raw;
  }
}

/** Clients that write nothing before this turn of the event loop ends. */
const heldBack = new WeakSet<RedisClient>();

/**
 * Sends the scripts of all calls of this turn of the event loop in one write. A write for each costs more than all the
 * rest of a script's way (`bench/proxy.ts`: 453 µs of CPU a call, 367 with one write).
 */
function writeTogether(redis: RedisClient): void {
  if (heldBack.has(redis)) return;
  heldBack.add(redis);
  const connections = redis instanceof Cluster ? redis.nodes('master') : [redis];
  // A client that is connecting has no stream.
  const streams = connections.flatMap(({ stream }) => (stream as Redis['stream'] | undefined) ?? []);
  for (const stream of streams) stream.cork();
  setImmediate(() => {
    heldBack.delete(redis);
    for (const stream of streams) stream.uncork();
  });
}
