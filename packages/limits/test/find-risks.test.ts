import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findRisks, type RedisClient } from '../src/index.ts';
import { type Engine, engines } from './redis.ts';

const [embedded, ...servers] = engines;
const masters = (redis: RedisClient) => (redis instanceof Cluster ? redis.nodes('master') : [redis]);

describe.each(servers)('the settings of %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  test('are reported where one of its servers may drop keys', async () => {
    const [last] = masters(redis).slice(-1);
    if (!last) throw new Error('no master');
    const [, before = ''] = (await last.config('GET', 'maxmemory-policy')) as string[];
    await last.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect((await findRisks(redis)).join()).toContain('noeviction');
    await last.config('SET', 'maxmemory-policy', 'noeviction');
    expect((await findRisks(redis)).join()).not.toContain('noeviction');
    await last.config('SET', 'maxmemory-policy', before);
  });

  test('are reported where it has no append-only file', async () => {
    const [first] = masters(redis);
    const setting = (await first?.config('GET', 'appendonly')) as string[] | undefined;
    const keeps = setting?.[1];
    expect(keeps).toMatch(/^(yes|no)$/);
    expect((await findRisks(redis)).join().includes('appendonly')).toBe(keeps === 'no');
  });
});

test('a server without an append-only file is reported', async () => {
  const engine = await embedded?.[1]();
  const redis = await engine?.connect();
  expect(await redis?.call('INFO', 'persistence')).toContain('aof_enabled:0');
  expect(redis && (await findRisks(redis))).toEqual([expect.stringContaining('appendonly')]);
  await engine?.close();
});
