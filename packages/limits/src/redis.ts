import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Raw } from './reply.ts';

/** One Redis server (or Sentinel) or a Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * Without a connection commands fail at once instead of waiting in a queue, because a call that cannot be counted now
 * is refused now. The client of a single server sends nothing twice. A Cluster client sends a command again if a node
 * disappears (ioredis, README, "Cluster", `retryDelayOnFailover`), so each script may run twice.
 */
const OPTIONS = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (tries: number) => Math.min(tries * 50, 1_000),
} satisfies RedisOptions;

/** How long a service waits for Redis. */
export type RedisTimeouts = { readonly connectMs: number; readonly commandMs: number };

const TIMEOUTS: RedisTimeouts = { connectMs: 5_000, commandMs: 5_000 };

/**
 * Connects to Redis by URL: `redis[s]://host:port/db`, `redis+cluster://a:1,b:2`, `redis+sentinel://a:1,b:2/name`. The
 * client reconnects automatically. Commands fail while there is no connection. Throws when the URL is malformed.
 * @param onError called with each connection error
 */
export function connectRedis(url: string, onError: (error: Error) => void, timeouts = TIMEOUTS): RedisClient {
  const client = create(url, timeouts);
  // Each call that waits for its settle adds a listener for the connection.
  client.setMaxListeners(0);
  client.on('error', onError);
  return client;
}

/** Opens a second connection to the same Redis, because a subscribed connection cannot run other commands. */
export function anotherConnection(client: RedisClient, onError: (error: Error) => void): RedisClient {
  const another = client instanceof Cluster ? client.duplicate() : client.duplicate();
  another.on('error', onError);
  return another;
}

/** Resolves when the client is connected. Rejects after `timeoutMs`. */
export function redisReady(client: RedisClient, timeoutMs = 10_000): Promise<void> {
  if (client.status === 'ready') return Promise.resolve();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('Redis did not answer')), timeoutMs);
    client.once('ready', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Replies with which Redis refuses a whole script (`#!lua`) before its first line. */
const REFUSED = /^(?:OOM|READONLY|MASTERDOWN|NOREPLICAS|MISCONF|LOADING|BUSY|NOAUTH|NOPERM) /;

/**
 * Whether Redis certainly did not run a script that failed with this error. A Cluster client may have sent the script
 * earlier to a node that disappeared without an answer.
 */
export const surelyNotRun = (redis: RedisClient, error: unknown): boolean =>
  !(redis instanceof Cluster) && error instanceof Error && REFUSED.test(error.message);

/** The replies of a server that is not the master, or is cut off from its replicas. */
const ROLE_LOST = /^(?:READONLY|MASTERDOWN|NOREPLICAS) /;
const RECONNECT_MS = 100;

/**
 * Reconnects on such a reply. Another server behind the same address may have become the master, while this connection stays with the old
 * one. It reconnects at most once in 100 ms, because every command of a pipeline gets that reply.
 */
function reconnectsOnLostRole() {
  let lastMs = 0;
  return ({ message }: Error): boolean => {
    if (!ROLE_LOST.test(message) || Date.now() - lastMs < RECONNECT_MS) return false;
    lastMs = Date.now();
    return true;
  };
}

function create(url: string, { connectMs, commandMs }: RedisTimeouts): RedisClient {
  const match = /^(redis|rediss)(?:\+(cluster|sentinel))?:\/\/(?:([^@/]*)@)?([^/]+)(?:\/(.*))?$/.exec(url);
  if (!match) throw new Error('REDIS_URL is malformed');
  const options = {
    ...OPTIONS,
    connectTimeout: connectMs,
    // Closes a connection that does not answer, and fails its commands. ioredis' `commandTimeout` would start a timer for each command.
    socketTimeout: commandMs,
    reconnectOnError: reconnectsOnLostRole(),
  };
  const [, scheme, kind, user = '', hosts = '', path = ''] = match;
  if (kind === undefined) return new Redis(url, options);
  const nodes = hosts.split(',').map(endpoint);
  const [username, password] = user.split(':').map(decodeURIComponent);
  const auth = {
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    ...(scheme === 'rediss' ? { tls: {} } : {}),
  };
  if (kind === 'sentinel')
    return new Redis({ ...options, ...auth, sentinels: nodes, name: path || 'mymaster' });
  return new Cluster(nodes, {
    enableOfflineQueue: false,
    redisOptions: { ...options, ...auth },
    clusterRetryStrategy: OPTIONS.retryStrategy,
  });
}

function endpoint(text: string): { host: string; port: number } {
  // A URL has an IPv6 address in brackets.
  const [, v6, name = '', port = '6379'] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? [];
  return { host: v6 ?? name, port: Number(port) };
}

/** Clients that buffer their writes until the end of this event loop turn. */
const heldBack = new WeakSet<RedisClient>();

/**
 * Sends the scripts of all calls of this turn of the event loop in one write. A write for each script costs more than
 * everything else about it (453 µs of CPU a call, 367 with one write).
 */
export function writeTogether(redis: RedisClient): void {
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

/**
 * The groups of partitions that one run of a script can serve. In a Cluster each partition may be on another node, so each is its own
 * group.
 */
export const groupsOf = <T>(redis: RedisClient, partitions: readonly T[]): (readonly T[])[] =>
  redis instanceof Cluster ? partitions.map((each) => [each]) : [partitions];

/** The arguments of EVAL and EVALSHA after the script: the number of keys, KEYS, ARGV. */
export type Places = [keys: number, ...(string | number)[]];

/** A script as Redis knows it. */
export type Sent<T> = { readonly sha: string; readonly text: string; readonly read: (reply: Raw) => T };

/** Sends a script's SHA-1, and its text only to a server that has not seen it. Throws what ioredis throws. */
export function sendScript<T>(redis: RedisClient, { sha, text, read }: Sent<T>, places: Places): Promise<T> {
  writeTogether(redis);
  const reply = redis.evalsha(sha, ...places) as Promise<Raw>;
  return reply.then(read, (error: unknown) => {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
    return (redis.eval(text, ...places) as Promise<Raw>).then(read);
  });
}
