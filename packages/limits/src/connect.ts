import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { RedisClient } from './script.ts';

/**
 * Commands are never queued while there is no connection: a call that cannot be counted now is refused now.
 * One server's client sends nothing twice. A Cluster's does when a node goes away (ioredis, README, "Cluster",
 * `retryDelayOnFailover`), so every script bears being run again.
 */
const OPTIONS = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  commandTimeout: 5_000,
  connectTimeout: 5_000,
  retryStrategy: (tries: number) => Math.min(tries * 50, 1_000),
} satisfies RedisOptions;

/**
 * Connects to Redis by URL: `redis[s]://host:port/db`, `redis+cluster://a:1,b:2`,
 * `redis+sentinel://a:1,b:2/name`. Goes on reconnecting; commands fail while there is no connection.
 * @param onError told of connection errors
 */
export function connectRedis(url: string, onError: (error: Error) => void): RedisClient {
  const client = create(url);
  client.on('error', onError);
  return client;
}

/** A further connection to the same Redis: one that subscribes can do nothing else. It begins to connect. */
export function anotherConnection(client: RedisClient, onError: (error: Error) => void): RedisClient {
  const another = client instanceof Cluster ? client.duplicate() : client.duplicate();
  another.on('error', onError);
  return another;
}

/** Resolves when the client can be used, or rejects after `timeoutMs`. */
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

function create(url: string): RedisClient {
  const match = /^(redis|rediss)(?:\+(cluster|sentinel))?:\/\/(?:([^@/]*)@)?([^/]+)(?:\/(.*))?$/.exec(url);
  if (!match) throw new Error('REDIS_URL is malformed');
  const [, scheme, kind, user = '', hosts = '', path = ''] = match;
  if (kind === undefined) return new Redis(url, OPTIONS);
  const nodes = hosts.split(',').map(endpoint);
  const [username, password] = user.split(':').map(decodeURIComponent);
  const auth = {
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
    ...(scheme === 'rediss' ? { tls: {} } : {}),
  };
  if (kind === 'sentinel')
    return new Redis({ ...OPTIONS, ...auth, sentinels: nodes, name: path || 'mymaster' });
  return new Cluster(nodes, {
    enableOfflineQueue: false,
    redisOptions: { ...OPTIONS, ...auth },
    clusterRetryStrategy: OPTIONS.retryStrategy,
  });
}

function endpoint(text: string): { host: string; port: number } {
  const at = text.lastIndexOf(':');
  return at < 0 ? { host: text, port: 6379 } : { host: text.slice(0, at), port: Number(text.slice(at + 1)) };
}
