import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  BACKLOG_MAX,
  BACKLOG_ROOM,
  charge,
  type GrantState,
  keys,
  loadGrant,
  type RedisClient,
  settle,
} from '../src/index.ts';
import { admitted, loadedGrant, newAsk, newCharge, newOutcome } from './grant.ts';
import { type Engine, engines, hasRedisServer, openPartition, startServer } from './redis.ts';

/** The embedded engine takes seconds to fill, and more on a busy machine. */
const TIMEOUT_MS = 120_000;

test('ROOM in room.lua equals BACKLOG_ROOM', () => {
  const script = readFileSync(new URL('../src/lua/shared/room.lua', import.meta.url), 'utf8');
  expect(/^local ROOM = ([\d.]+)$/m.exec(script)?.[1]).toBe(String(BACKLOG_ROOM));
});

describe.each(engines)('a backlog on %s', { timeout: TIMEOUT_MS }, (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  test('at its bound refuses further calls and still accepts every open settle', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const [first, second] = [await admitted(redis, grant), await admitted(redis, grant)];
    await fillBacklog(redis, partition, BACKLOG_MAX - 3);
    const last = await admitted(redis, grant);
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'backlog' });
    expect(await charge(redis, grant.ref, newCharge())).toEqual({ is: 'backlog' });
    for (const hold of [first, second, last]) {
      expect(await settle(redis, grant.ref, newOutcome(hold))).toBeDefined();
      expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'backlog' });
    }
    await redis.xtrim(keys.usage(partition), 'MAXLEN', 0);
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'admitted' });
    await redis.del(keys.leases(partition));
  });
});

describe.skipIf(!hasRedisServer)(
  'a backlog at its bound on a Redis of its own',
  { timeout: TIMEOUT_MS },
  () => {
    let engine: Engine;
    let redis: RedisClient;
    let grant: GrantState;
    /** Its partition has no backlog. */
    let other: GrantState;
    beforeAll(async () => {
      engine = await startServer();
      redis = await engine.connect();
      other = await loadedGrant(redis, await openPartition(redis));
      const partition = await openPartition(redis);
      grant = await loadedGrant(redis, partition);
      await fillBacklog(redis, partition, BACKLOG_MAX);
    });
    afterAll(() => engine.close());

    /** Sets `maxmemory` so that Redis uses this share of it. */
    const useShare = async (share: number) => {
      const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
      await redis.call('CONFIG', 'SET', 'maxmemory', String(share === 0 ? 0 : Math.round(used / share)));
    };
    const admissionOf = async (of: GrantState) => {
      const answers = [await admit(redis, of.ref, newAsk()), await charge(redis, of.ref, newCharge())];
      return answers.map(({ is }) => is);
    };

    test.each([
      ['half of its memory', 0.5, 'admitted'],
      ['seven tenths of its memory', 0.7, 'admitted'],
      ['four fifths of its memory', 0.8, 'backlog'],
      ['memory without a bound', 0, 'backlog'],
    ])('that uses %s: only calls of its partition depend on it', async (_name, share, is) => {
      await useShare(share);
      expect(await admissionOf(grant)).toEqual([is, is]);
      expect(await admissionOf(other)).toEqual(['admitted', 'admitted']);
    });

    test('is not read whole when Redis has lost a budget', async () => {
      await useShare(0.5);
      const { partition, budgetIds } = grant.ref;
      await redis.del(keys.budget(partition, budgetIds[0] ?? ''));
      await fillStream(redis, partition, BACKLOG_MAX + 1_000);
      expect(await loadGrant(redis, grant)).toBe('closed');
      await redis.xtrim(keys.usage(partition), 'MAXLEN', BACKLOG_MAX);
      expect(await loadGrant(redis, grant)).toBe('ok');
    });
  },
);

async function fillStream(redis: RedisClient, partition: number, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1_000) {
    const pipeline = redis.pipeline();
    for (let j = 0; j < 1_000; j++) {
      pipeline.xadd(
        keys.usage(partition),
        '*',
        'hold',
        `${i + j}`,
        'budgets',
        'other',
        'uses',
        '1',
        'cost',
        '1',
      );
    }
    await pipeline.exec();
  }
}

async function fillBacklog(redis: RedisClient, partition: number, count: number): Promise<void> {
  const leases = Array.from({ length: count }, (_, i) => [Date.now() + 600_000, `other-${i}`]);
  for (let i = 0; i < count; i += 10_000) {
    await redis.zadd(keys.leases(partition), ...leases.slice(i, i + 10_000).flat());
  }
}
