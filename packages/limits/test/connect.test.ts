import { once } from 'node:events';
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from 'node:net';
import { Cluster } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { admit, connectRedis, keys, type RedisClient, redisReady } from '../src/index.ts';
import { newAsk, newBudget, newGrant } from './grant.ts';
import { newPartition, openPartition, serveEmbedded } from './redis.ts';

const CLUSTER = process.env.TEST_REDIS_CLUSTER ?? '';

describe('a connection to Redis', () => {
  const clients: RedisClient[] = [];
  const connect = (url: string) => {
    const client = connectRedis(url, () => undefined);
    clients.push(client);
    return client;
  };
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect();
  });

  test('that is down refuses a call at once, and the call is counted nowhere when Redis is back', async () => {
    const first = await serveEmbedded();
    const redis = connect(`redis://127.0.0.1:${first.port}`);
    await redisReady(redis);
    const { ref } = newGrant(await openPartition(redis), newBudget());
    const ended = new Promise((resolve) => redis.once('close', resolve));
    await first.close();
    await ended;
    await expect(admit(redis, ref, newAsk())).rejects.toThrow();
    const second = await serveEmbedded(first.port);
    await redisReady(redis);
    expect(await redis.keys('*')).toEqual([]);
    expect(await admit(redis, ref, newAsk())).toEqual({ is: 'closed' });
    await second.close();
  });

  test('times out if Redis does not answer', async () => {
    const gone = await serveEmbedded();
    await gone.close();
    await expect(redisReady(connect(`redis://127.0.0.1:${gone.port}`), 50)).rejects.toThrow('did not answer');
  });

  test('that stops responding fails a command after its timeout', async () => {
    const server = await serveEmbedded();
    const line = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.pipe(connectSocket(server.port, '127.0.0.1').on('error', () => undefined)).pipe(socket);
      silenced.push(() => socket.unpipe());
    }).listen(0, '127.0.0.1');
    const silenced: (() => void)[] = [];
    await once(line, 'listening');
    const url = `redis://127.0.0.1:${(line.address() as AddressInfo).port}`;
    const usual = connect(url);
    const short = connectRedis(url, () => undefined, { connectMs: 5_000, commandMs: 50 });
    clients.push(short);
    await Promise.all([redisReady(usual), redisReady(short)]);
    for (const silence of silenced) silence();
    const failed = (client: RedisClient) => client.ping().catch(() => client);
    expect(await Promise.race([failed(usual), failed(short)])).toBe(short);
    line.close();
    await server.close();
  });

  test('that stops responding is replaced', async () => {
    const server = await serveEmbedded();
    const inner: Socket[] = [];
    const line = createServer((socket) => {
      inner.push(socket);
      socket.on('error', () => undefined);
      socket.pipe(connectSocket(server.port, '127.0.0.1')).pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(line, 'listening');
    const redis = connect(`redis://127.0.0.1:${(line.address() as AddressInfo).port}`);
    await redisReady(redis);
    inner[0]?.unpipe();
    const ended = new Promise((resolve) => redis.once('close', resolve));
    await expect(redis.ping()).rejects.toThrow();
    await ended;
    await redisReady(redis);
    expect(await redis.ping()).toBe('PONG');
    redis.disconnect();
    line.close();
    await server.close();
  });

  test('runs scripts on a server that has not cached them', async () => {
    const server = await serveEmbedded();
    const redis = connect(`redis://127.0.0.1:${server.port}`);
    await redisReady(redis);
    const { ref } = newGrant(await openPartition(redis), newBudget());
    for (let i = 0; i < 2; i++) {
      await redis.script('FLUSH');
      expect(await admit(redis, ref, newAsk())).toEqual({ is: 'unknown' });
    }
    redis.disconnect();
    await server.close();
  });

  test('to a Cluster is configured by its nodes, with user and password', () => {
    const redis = connect('rediss+cluster://me:p%40ss@127.0.0.1:1,localhost');
    if (!(redis instanceof Cluster)) throw new Error('not a Cluster client');
    expect(redis.options.redisOptions).toMatchObject({ username: 'me', password: 'p@ss', tls: {} });
  });

  test.runIf(CLUSTER)('runs a script after its partition has moved to another node', async () => {
    const redis = connect(CLUSTER);
    if (!(redis instanceof Cluster)) throw new Error('not a Cluster client');
    await redisReady(redis);
    const { ref } = newGrant(newPartition(), newBudget());
    expect(await admit(redis, ref, newAsk())).toEqual({ is: 'closed' });
    const slot = Number(await redis.cluster('KEYSLOT', keys.partition(ref.partition)));
    const masters = await Promise.all(
      redis.nodes('master').map(async (node) => ({ node, id: String(await node.cluster('MYID')) })),
    );
    const owners = await Promise.all(
      masters.map(({ node }) =>
        node.get(keys.partition(ref.partition)).then(
          () => true,
          () => false,
        ),
      ),
    );
    const target = masters[owners.indexOf(false)]?.id ?? '';
    for (const { node } of masters) await node.cluster('SETSLOT', slot, 'NODE', target);
    expect(await admit(redis, ref, newAsk())).toEqual({ is: 'closed' });
    redis.disconnect();
  });

  test.each(['', 'localhost:6379', 'http://localhost', 'redis://', 'redis+other://a', 'redis+cluster://'])(
    'with the malformed address "%s" is refused without showing the address',
    (url) => {
      expect(() => connect(url)).toThrow(/^REDIS_URL is malformed$/);
    },
  );
});
