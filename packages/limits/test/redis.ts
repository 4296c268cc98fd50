import { execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { Cluster } from 'ioredis';
import {
  createRedisCommandExecutor,
  RedisDatabase,
  RedisServerState,
  Resp2Server,
} from 'js-redis-server/core';
import { connectRedis, drain, type RedisClient, redisReady, reopen } from '../src/index.ts';

/** A Redis to test on; every client it gave is closed with it. */
export type Engine = { readonly connect: () => Promise<RedisClient>; readonly close: () => Promise<void> };

/** The engines at hand, by name: the embedded one, and real ones that the environment names. */
export const engines: readonly (readonly [name: string, start: () => Promise<Engine>])[] = [
  ['embedded Redis', startEmbedded],
  ...named('one Redis server', process.env.TEST_REDIS_URL),
  ...named('Redis Cluster', process.env.TEST_REDIS_CLUSTER),
];

/** A partition no other test uses, in its first epoch and open. */
export async function openPartition(redis: RedisClient): Promise<number> {
  const partition = newPartition();
  await reopen(redis, partition, 1);
  await drain(redis, { partition, epoch: 1, lastId: '0-0' }, 1);
  return partition;
}

/** A partition no other test uses, of which Redis knows nothing. */
export function newPartition(): number {
  const partition = randomInt(1_000, 2 ** 47);
  used.add(`{p${partition}}`);
  return partition;
}
const used = new Set<string>();

/** All keys of a partition, or of any, on whichever node they are. */
export async function keysOf(redis: RedisClient, partition: number | '*'): Promise<string[]> {
  const nodes = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const found = await Promise.all(nodes.map((node) => node.keys(`presign:{p${partition}}:*`)));
  return found.flat();
}

/** Does to one partition what a FLUSHALL does to all. */
export async function loseAll(redis: RedisClient, partition: number): Promise<void> {
  for (const key of await keysOf(redis, partition)) await redis.del(key);
}

/** The embedded engine as `start` runs it, on loopback. */
export async function serveEmbedded(
  port = 0,
  edit: (script: string) => string = (script) => script,
): Promise<{ port: number; close: () => Promise<void> }> {
  const state = new RedisServerState();
  // Without the listener for keyspace notifications, which copies the whole value on every change.
  state.databases[0] = new RedisDatabase(0);
  await readScriptFlagsAsComment(state, edit);
  const { server } = new Resp2Server({ server: state, executor: createRedisCommandExecutor() });
  // Without it Nagle's algorithm and delayed ACKs add 40 ms to pipelined replies.
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket.setNoDelay(true)));
  await new Promise<void>((resolve) => {
    server.listen({ port, host: '127.0.0.1' }, resolve);
  });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
      state.close();
    });
  return { port: (server.address() as AddressInfo).port, close };
}

/** As the embedded engine of `start` does (`infra/local/src/engines/embedded-redis.ts`). */
async function readScriptFlagsAsComment(
  state: RedisServerState,
  edit: (script: string) => string,
): Promise<void> {
  const lua = await state.getLuaRuntime();
  const run = lua.eval.bind(lua);
  lua.eval = (script, ...rest) => run(Buffer.from(edit(script.toString()).replace(/^#!/, '--')), ...rest);
}

/** Whether this machine has the program. */
export const hasRedisServer = (() => {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** A Redis server of the test's own, in memory. */
export async function startServer(): Promise<Engine> {
  const reserved = createServer().listen(0, '127.0.0.1');
  await once(reserved, 'listening');
  const { port } = reserved.address() as AddressInfo;
  reserved.close();
  const where = ['--port', String(port), '--bind', '127.0.0.1', '--dir', tmpdir()];
  const server = spawn('redis-server', [...where, '--save', '', '--maxmemory-policy', 'noeviction'], {
    stdio: 'ignore',
  });
  const { connect, close } = engineAt(`redis://127.0.0.1:${port}`);
  return {
    connect,
    close: async () => {
      await close();
      const ended = once(server, 'exit');
      server.kill();
      await ended;
    },
  };
}

async function startEmbedded(): Promise<Engine> {
  const { port, close } = await serveEmbedded();
  const engine = engineAt(`redis://127.0.0.1:${port}`);
  return { connect: engine.connect, close: () => engine.close().then(close) };
}

/** The embedded engine with a fault: it runs other code wherever a script has this one. */
export async function serveFaulty(
  right: RegExp,
  wrong: string,
): Promise<{ engine: Engine; planted: () => boolean }> {
  let isPlanted = false;
  const { port, close } = await serveEmbedded(0, (script) => {
    isPlanted ||= right.test(script);
    return script.replace(right, wrong);
  });
  const { connect, close: closeClients } = engineAt(`redis://127.0.0.1:${port}`);
  return { engine: { connect, close: () => closeClients().then(close) }, planted: () => isPlanted };
}

function named(name: string, url: string | undefined) {
  return url === undefined ? [] : [[name, async () => engineAt(url)] as const];
}

function engineAt(url: string): Engine {
  const clients: RedisClient[] = [];
  const connect = async () => {
    // The embedded engine runs in this process, which the calls of a test may keep busy for longer than the default.
    const client = connectRedis(url, () => undefined, { connectMs: 60_000, commandMs: 60_000 });
    clients.push(client);
    await redisReady(client);
    return client;
  };
  const close = async () => {
    const [client] = clients;
    const left = client ? await keysOf(client, '*') : [];
    for (const key of left) if (used.has(key.split(':')[1] ?? '')) await client?.del(key);
    for (const each of clients) each.disconnect();
  };
  return { connect, close };
}
