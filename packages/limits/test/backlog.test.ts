import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admit, BACKLOG_MAX, charge, keys, type RedisClient, settle } from '../src/index.ts';
import { admitted, loadedGrant, newAsk, newCharge, newOutcome } from './grant.ts';
import { type Engine, engines, openPartition } from './redis.ts';

/** The embedded engine takes seconds to fill. */
const TIMEOUT_MS = 30_000;

describe.each(engines)('a backlog on %s', { timeout: TIMEOUT_MS }, (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  test('at its bound refuses further calls and still takes every open settle', async () => {
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

async function fillBacklog(redis: RedisClient, partition: number, count: number): Promise<void> {
  const leases = Array.from({ length: count }, (_, i) => [Date.now() + 600_000, `other-${i}`]);
  for (let i = 0; i < count; i += 10_000) {
    await redis.zadd(keys.leases(partition), ...leases.slice(i, i + 10_000).flat());
  }
}
