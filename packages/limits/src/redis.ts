import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { keys } from './keys.ts';

/** One Redis server (or Sentinel) or a Cluster. */
export type RedisClient = Redis | Cluster;

/**
 * Without a connection commands fail at once instead of waiting in a queue: a call that cannot be counted now is
 * refused now. The client of one server sends nothing twice. A Cluster's sends a command again when a node goes away
 * (ioredis, README, "Cluster", `retryDelayOnFailover`), so each script may run twice.
 */
const OPTIONS = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  commandTimeout: 5_000,
  connectTimeout: 5_000,
  // Ends a connection to a server that died without closing it.
  socketTimeout: 5_000,
  retryStrategy: (tries: number) => Math.min(tries * 50, 1_000),
} satisfies RedisOptions;

/**
 * Connects to Redis by URL: `redis[s]://host:port/db`, `redis+cluster://a:1,b:2`, `redis+sentinel://a:1,b:2/name`.
 * The client reconnects by itself; commands fail while there is no connection. Throws when the URL is malformed.
 * @param onError called with each connection error
 */
export function connectRedis(url: string, onError: (error: Error) => void): RedisClient {
  const client = create(url);
  client.on('error', onError);
  return client;
}

/** Opens a second connection to the same Redis: one that subscribes cannot run other commands. */
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
 * Whether Redis surely did not run a script that failed with this error. A Cluster client may have sent the script
 * before, to a node that went away without an answer.
 */
export const surelyNotRun = (redis: RedisClient, error: unknown): boolean =>
  !(redis instanceof Cluster) && error instanceof Error && REFUSED.test(error.message);

/** Replies of a server that is not the master, or is cut off from its replicas. */
const ROLE_LOST = /^(?:READONLY|MASTERDOWN|NOREPLICAS) /;
const RECONNECT_MS = 100;

/**
 * Reconnects on a reply that says so: behind one address another server may have become the master, while this connection
 * stays with the old one. At most once in 100 ms, since every command of a pipeline gets that reply.
 */
function reconnectsOnLostRole() {
  let lastMs = 0;
  return ({ message }: Error): boolean => {
    if (!ROLE_LOST.test(message) || Date.now() - lastMs < RECONNECT_MS) return false;
    lastMs = Date.now();
    return true;
  };
}

function create(url: string): RedisClient {
  const match = /^(redis|rediss)(?:\+(cluster|sentinel))?:\/\/(?:([^@/]*)@)?([^/]+)(?:\/(.*))?$/.exec(url);
  if (!match) throw new Error('REDIS_URL is malformed');
  const options = { ...OPTIONS, reconnectOnError: reconnectsOnLostRole() };
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
  const at = text.lastIndexOf(':');
  return at < 0 ? { host: text, port: 6379 } : { host: text.slice(0, at), port: Number(text.slice(at + 1)) };
}

/**
 * Finds settings with which Redis could lose uses and money, by the `INFO` of every master. A service that hides a
 * setting is not judged by it.
 * @returns a sentence for the operator on each
 */
export async function findRisks(redis: RedisClient): Promise<readonly string[]> {
  const masters = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const infos = await Promise.all(
    masters.map(async (each) => `${await each.info('persistence')}${await each.info('memory')}`),
  );
  return RISKS.filter(([sign]) => infos.some((info) => sign.test(info))).map(([, says]) => says);
}

const RISKS: readonly (readonly [sign: RegExp, says: string])[] = [
  [
    /^aof_enabled:0/m,
    'Redis has no append-only file (appendonly no): a restart loses what is not yet in the ledger',
  ],
  [
    /^maxmemory_policy:(?!noeviction)/m,
    'Redis may drop keys when its memory is full (maxmemory-policy): set it to noeviction',
  ],
];

/** Whether Redis can take calls now. */
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

/** Clients that write nothing before this turn of the event loop ends. */
const heldBack = new WeakSet<RedisClient>();

/**
 * Sends the scripts of all calls of this turn of the event loop in one write. A write for each costs more than all the
 * rest of a script's way (`bench/proxy.ts`: 453 µs of CPU a call, 367 with one write).
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
