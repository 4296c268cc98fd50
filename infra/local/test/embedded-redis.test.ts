import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  type EmbeddedRedis,
  type EmbeddedRedisOptions,
  startEmbeddedRedis,
} from '../src/engines/embedded-redis.ts';
import { kill, runProgram } from './programs/run-program.ts';

let dir: string;
let cleanUps: (() => unknown)[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'embedded-redis-'));
  cleanUps = [() => rmSync(dir, { recursive: true })];
});
afterEach(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
});

async function start(
  options: EmbeddedRedisOptions = { dir },
): Promise<{ engine: EmbeddedRedis; client: Redis }> {
  const engine = await startEmbeddedRedis(options);
  const client = connectTo(engine.url);
  cleanUps.push(() => engine.close());
  return { engine, client };
}

function connectTo(url: string): Redis {
  const client = new Redis(url, { retryStrategy: () => null });
  client.on('error', () => {});
  cleanUps.push(() => client.disconnect());
  return client;
}

/** Everything a client can see of the data. */
async function dump(client: Redis): Promise<Record<string, unknown>> {
  const keys = (await client.keys('*')).sort();
  const seen = await Promise.all(
    keys.map(async (key) => [key, await client.pexpiretime(key), await read(client, key)]),
  );
  return Object.fromEntries(seen.map(([key, ...rest]) => [key, rest]));
}

async function read(client: Redis, key: string): Promise<unknown> {
  const type = await client.type(key);
  if (type === 'hash') return client.hgetall(key);
  if (type === 'zset') return client.zrange(key, '0', '-1', 'WITHSCORES');
  if (type === 'stream') return [await client.xrange(key, '-', '+'), await client.xinfo('STREAM', key)];
  if (type === 'list') return client.lrange(key, 0, -1);
  if (type === 'set') return (await client.smembers(key)).sort();
  return client.getBuffer(key);
}

test('keys of every type, their expiry and their bytes are the same after a restart', async () => {
  const { engine, client } = await start();
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  await client.set('{p}bytes', bytes, 'PX', 60_000);
  await client.hset('{p}hash', 'n', '9007199254740991', 'ü', 'ß');
  await client.hset('{p}hash', Buffer.from([0, 255]), bytes);
  await client.pexpireat('{p}hash', Date.now() + 90_000);
  await client.zadd('{p}zset', 1731000000000, 'a', '-inf', 'b', 0.1, 'c');
  await client.xadd('{p}stream', '*', 'f', 'v');
  await client.rpush('{p}list', 'x', 'y');
  await client.sadd('{p}set', 'x', 'y');
  await client.set('{p}gone', '1');
  await client.del('{p}gone');
  await client.set('{p}kept', '1', 'PX', 60_000);
  await client.persist('{p}kept');
  const before = await dump(client);
  await engine.close();
  expect(await dump((await start()).client)).toEqual(before);
  expect(Object.keys(before)).toHaveLength(7);
});

const ROUNDS = process.env.TEST_ALL ? 80 : 20;

test('any sequence of changes is restored exactly, whether or not the log was rewritten', async () => {
  const random = randomFrom(7);
  for (let round = 0; round < ROUNDS; round += 1) {
    const { engine, client } = await start({ dir, compactAboveBytes: random(2) * 1_000_000 + 2_000 });
    for (let i = 0; i < 40; i += 1) await changeSomething(client, random);
    const before = await dump(client);
    await engine.close();
    const again = await start();
    expect(await dump(again.client)).toEqual(before);
    await again.engine.close();
  }
});

/** Few keys, so that every kind of change meets what others left. */
async function changeSomething(client: Redis, random: (below: number) => number): Promise<void> {
  const one = (name: string) => `{p}${name}${random(2)}`;
  const item = `item${random(4)}`;
  const later = Date.now() + 100_000 + random(1_000);
  const anyKey = one(['hash', 'zset', 'stream', 'list', 'set', 'string'][random(6)] ?? '');
  const changes = [
    () => client.hset(one('hash'), item, random(3)),
    () => client.hdel(one('hash'), item),
    () => client.hincrby(one('hash'), item, random(100)),
    () => client.zadd(one('zset'), 'GT', random(50), item),
    () => client.zadd(one('zset'), random(50), item),
    () => client.zrem(one('zset'), item),
    () => client.xadd(one('stream'), '*', 'f', item),
    () => client.xadd(one('stream'), 'MAXLEN', 3, '*', 'f', item),
    () => client.xtrim(one('stream'), 'MAXLEN', random(4)),
    () => removeOneEntry(client, one('stream'), random),
    () => client.rpush(one('list'), item),
    () => client.multi().del(one('set')).sadd(one('set'), item).exec(),
    () => client.set(one('string'), item, 'PXAT', later),
    () => client.set(one('string'), item),
    () => client.pexpireat(anyKey, later),
    () => client.persist(anyKey),
    () => (random(8) === 0 ? client.del(anyKey) : client.exists(anyKey)),
    () => (random(30) === 0 ? client.flushall() : client.copy('{p}hash0', '{p}hash1', 'REPLACE')),
  ];
  await changes[random(changes.length)]?.();
}

async function removeOneEntry(client: Redis, key: string, random: (below: number) => number): Promise<void> {
  const entries = await client.xrange(key, '-', '+');
  const [id] = entries[random(entries.length)] ?? [];
  if (id !== undefined) await client.xdel(key, id);
}

function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('stream ids keep rising after a restart, even if the stream was trimmed to nothing', async () => {
  const { engine, client } = await start();
  const future = `${Date.now() + 3_600_000}-5`;
  await client.xadd('{p}s', future, 'f', 'v');
  await client.xtrim('{p}s', 'MINID', `${Date.now() + 7_200_000}`);
  await engine.close();
  await (await start()).engine.close();
  const { client: again } = await start();
  expect(await again.xlen('{p}s')).toBe(0);
  expect(await again.xadd('{p}s', '*', 'f', 'v')).toBe(future.replace('-5', '-6'));
});

test('a key that expired while the engine was off is gone', async () => {
  const { engine, client } = await start();
  await client.set('{p}brief', '1', 'PX', 30);
  await client.set('{p}long', '1', 'PX', 60_000);
  await engine.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await (await start()).client.keys('*')).toEqual(['{p}long']);
});

/** Three keys in one script; whoever sees them differ sees half a script. */
const SCRIPT = `
local n = redis.call('HINCRBY', KEYS[1], 'n', 1)
redis.call('ZADD', KEYS[2], n, 'n')
redis.call('XADD', KEYS[3], '*', 'n', n)
return n`;

test('after kill -9 every answered script has all its changes, and no script has a part of them', async () => {
  for (const killAfter of process.env.TEST_ALL ? [1, 60, 140] : [1, 140]) {
    const { child, said: url } = await runProgram('hold-redis.ts', dir);
    const client = connectTo(url);
    let answered = Number(await client.hget('{p}h', 'n'));
    const enough = answered + killAfter;
    let killed: Promise<void> | undefined;
    const caller = async () => {
      for (;;) {
        const n = await client.eval(SCRIPT, 3, '{p}h', '{p}z', '{p}s');
        answered = Math.max(answered, Number(n));
        if (answered >= enough) killed ??= kill(child);
      }
    };
    await Promise.allSettled(Array.from({ length: 8 }, caller));
    await killed;
    const { engine, client: again } = await start();
    const found = Number(await again.hget('{p}h', 'n'));
    expect(found).toBeGreaterThanOrEqual(answered);
    expect(Number(await again.zscore('{p}z', 'n'))).toBe(found);
    expect(await again.xlen('{p}s')).toBe(found);
    await engine.close();
  }
});

const STEP = process.env.TEST_ALL ? 1 : 11;

test('a log cut off within a script restores all of that script or nothing of it', async () => {
  const { engine, client } = await start();
  const file = join(dir, 'redis.log');
  await client.eval(SCRIPT, 3, '{p}h', '{p}z', '{p}s');
  const { size } = statSync(file);
  await client.eval(SCRIPT, 3, '{p}h', '{p}z', '{p}s');
  await engine.close();
  const whole = readFileSync(file);
  for (let length = size; length <= whole.length; length += length < whole.length - STEP ? STEP : 1) {
    writeFileSync(file, whole.subarray(0, length));
    const again = await start();
    const expected = length === whole.length ? 2 : 1;
    expect(Number(await again.client.hget('{p}h', 'n'))).toBe(expected);
    expect(Number(await again.client.zscore('{p}z', 'n'))).toBe(expected);
    expect(await again.client.xlen('{p}s')).toBe(expected);
    await again.engine.close();
  }
});

test('a damaged log stops the start with an error that names it', async () => {
  const { engine, client } = await start();
  await client.set('{p}a', '1');
  await engine.close();
  writeFileSync(join(dir, 'redis.log'), 'not a log\n');
  await expect(startEmbeddedRedis({ dir })).rejects.toThrow(`${join(dir, 'redis.log')} is damaged at line 1`);
});

test('if the log cannot be written, the change is not acknowledged and further commands are refused', async () => {
  const { client } = await start({ dir, compactAboveBytes: 1_000 });
  await client.set('{p}a', '1');
  rmSync(dir, { recursive: true });
  cleanUps.shift();
  await expect(client.set('{p}b', 'x'.repeat(2_000))).rejects.toThrow(/MISCONF|cannot be written/);
  await expect(client.get('{p}a')).rejects.toThrow(/cannot be written/);
});

test('the log stays small when one key is changed again and again', async () => {
  const { client } = await start({ dir, compactAboveBytes: 10_000 });
  for (let i = 0; i < 500; i += 1)
    await client.eval(SCRIPT.replace("'*'", "'MAXLEN', 2, '*'"), 3, '{p}h', '{p}z', '{p}s');
  expect(statSync(join(dir, 'redis.log')).size).toBeLessThanOrEqual(10_000);
});

test('it listens on 127.0.0.1 alone, and needs its password', async () => {
  const { engine } = await start({});
  const others = Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.map(({ address }) => address),
  );
  for (const host of others.filter((address) => address !== '127.0.0.1')) {
    await expect(connecting(engine.port, host), host).rejects.toThrow();
  }
  await connecting(engine.port, '127.0.0.1');
  const stranger = connectTo(`redis://127.0.0.1:${engine.port}`);
  await expect(stranger.set('{p}a', '1')).rejects.toThrow('NOAUTH');
});

function connecting(port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host, timeout: 500 });
    socket.once('connect', resolve).once('error', reject);
    socket.once('timeout', () => reject(new Error('no answer')));
    cleanUps.push(() => socket.destroy());
  });
}

test('a port in use fails the start', async () => {
  const { engine } = await start({});
  await expect(startEmbeddedRedis({ port: engine.port })).rejects.toThrow('EADDRINUSE');
});

test('close disconnects clients and frees the port', async () => {
  const { engine, client } = await start({});
  await client.ping();
  await engine.close();
  const { engine: next } = await start({ port: engine.port });
  expect(next.port).toBe(engine.port);
});
