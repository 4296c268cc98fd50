import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  expire,
  groupsOf,
  keys,
  type RedisClient,
  renew,
  settle,
  sweep,
  watchForJumps,
} from '../src/index.ts';
import { admitted, figures, loadedGrant, newHoldId, newOutcome } from './grant.ts';
import { drainAll, newLedger } from './ledger.ts';
import { type Engine, engines, openPartition } from './redis.ts';

describe.each(engines)('leases on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  test('an expired lease settles the full hold exactly once, although several gateways sweep', async () => {
    const gateways = [redis, await engine.connect(), await engine.connect()];
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 10_000 });
    const ended = { uses: 2, holdMicrousd: 100, leaseMs: 0, record: '{"beg":1}' };
    const holds = await Promise.all(Array.from({ length: 50 }, () => admitted(redis, grant, ended)));
    const alive = await admitted(redis, grant, { holdMicrousd: 7 });
    const swept = await Promise.all(gateways.map((gateway) => sweep(gateway, [partition])));
    expect(swept.reduce((sum, count) => sum + count)).toBe(50);
    const after = { used: '101', settled: '5000', held: '7' };
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual(after);
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    expect([...ledger.rows.keys()].sort()).toEqual(holds.sort());
    const full = { uses: 2, costMicrousd: 100, outcome: 'expired', record: '{"beg":1}' };
    for (const row of ledger.rows.values()) expect(row).toMatchObject(full);
    expect(await settle(redis, grant.ref, newOutcome(alive, { costMicrousd: 7 }))).toBeDefined();
  });

  test('one sweep settles all expired holds, however many', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    await Promise.all(Array.from({ length: 230 }, () => admitted(redis, grant, { leaseMs: 0 })));
    expect(await sweep(redis, [partition])).toBe(230);
    expect(await redis.zcard(keys.leases(partition))).toBe(0);
  });

  test('a sweep of several partitions settles the expired holds in each, except in one whose clock has jumped', async () => {
    const due = [130, 0, 3, 2];
    const partitions = await Promise.all(due.map(() => openPartition(redis)));
    for (const [i, partition] of partitions.entries()) {
      const grant = await loadedGrant(redis, partition);
      await admitted(redis, grant);
      await Promise.all(Array.from({ length: due[i] ?? 0 }, () => admitted(redis, grant, { leaseMs: 0 })));
    }
    const watch = (partition: number) => partition !== partitions[3];
    const swept = groupsOf(redis, partitions).map((group) => sweep(redis, group, watch));
    expect((await Promise.all(swept)).reduce((sum, count) => sum + count)).toBe(133);
    const left = await Promise.all(partitions.map((partition) => redis.zcard(keys.leases(partition))));
    expect(left).toEqual([1, 1, 1, 3]);
  });

  test('a hold that cannot be settled does not block others, in its partition or in another', async () => {
    const partitions = [await openPartition(redis), await openPartition(redis)];
    for (const partition of partitions) {
      const grant = await loadedGrant(redis, partition);
      await Promise.all(Array.from({ length: 120 }, () => admitted(redis, grant, { leaseMs: 0 })));
    }
    const broken = partitions[0] ?? -1;
    await redis.set(keys.hold(broken, 'broken'), 'no hash');
    await redis.zadd(keys.leases(broken), '0', 'broken');
    const sweepAll = async () => {
      const swept = await Promise.all(groupsOf(redis, partitions).map((group) => sweep(redis, group)));
      return swept.reduce((sum, count) => sum + count);
    };
    expect([await sweepAll(), await sweepAll(), await sweepAll()]).toEqual([99 + 120, 21, 0]);
    expect(await redis.zrange(keys.leases(broken), '0', '-1')).toEqual(['broken']);
  });

  test('a settle after the lease has expired and was swept changes nothing', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 1_000 });
    const hold = await admitted(redis, grant, { holdMicrousd: 300, leaseMs: 0 });
    expect(await sweep(redis, [partition])).toBe(1);
    expect(await settle(redis, grant.ref, newOutcome(hold, { uses: 0, costMicrousd: 1 }))).toBeUndefined();
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '1',
      settled: '300',
      held: '0',
    });
    expect(await redis.xlen(keys.usage(partition))).toBe(1);
  });

  test('of a settle and simultaneous sweeps exactly one counts', async () => {
    const gateways = [redis, await engine.connect()];
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 10_000 });
    const ended = { holdMicrousd: 100, leaseMs: 0 };
    const holds = await Promise.all(Array.from({ length: 20 }, () => admitted(redis, grant, ended)));
    const [, , ...settled] = await Promise.all([
      ...gateways.map((gateway) => sweep(gateway, [partition])),
      ...holds.map((hold) => settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 1 }))),
    ]);
    const mine = settled.filter(Boolean).length;
    const sum = String(mine + (20 - mine) * 100);
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '20',
      settled: sum,
      held: '0',
    });
    expect(await redis.xlen(keys.usage(partition))).toBe(20);
  });

  test('a renewed hold outlives its first lease', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const [kept, left] = [
      await admitted(redis, grant, { leaseMs: 0 }),
      await admitted(redis, grant, { leaseMs: 0 }),
    ];
    expect(await renew(redis, partition, 60_000, [kept])).toBe(1);
    expect(await sweep(redis, [partition])).toBe(1);
    expect(await settle(redis, grant.ref, newOutcome(left))).toBeUndefined();
    expect(await settle(redis, grant.ref, newOutcome(kept))).toBeDefined();
  });

  test('a hold that is renewed after a sweep found it is not settled', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const hold = await admitted(redis, grant, { leaseMs: 0 });
    await renew(redis, partition, 60_000, [hold]);
    expect(await expire(redis, partition, hold)).toBe(false);
    expect(await settle(redis, grant.ref, newOutcome(hold))).toBeDefined();
  });

  test('a hold that is settled, expired or unknown is not revived by renewing it', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const expired = await admitted(redis, grant, { leaseMs: 0 });
    await sweep(redis, [partition]);
    const settled = await admitted(redis, grant);
    await settle(redis, grant.ref, newOutcome(settled));
    expect(await renew(redis, partition, 60_000, [expired, settled, newHoldId()])).toBe(0);
    expect(await redis.zcard(keys.leases(partition))).toBe(0);
  });

  test('a lease without its hold is dropped and settles nothing', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 100 });
    const hold = await admitted(redis, grant, { leaseMs: 0 });
    await redis.del(keys.hold(partition, hold));
    expect(await sweep(redis, [partition])).toBe(0);
    expect(await redis.zcard(keys.leases(partition))).toBe(0);
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
  });
});

test('a clock that jumps ahead, and a silence, pause sweeps for the length of a lease; slow answers and clocks that go back or drift do not', () => {
  let now = 0;
  const watch = watchForJumps(60_000, () => now);
  /** A sweep that begins at this time and whose answer is late, by a clock that is ahead. */
  const sweeps = (askedMs: number, aheadMs: number, lateMs = 0) => {
    now = askedMs + lateMs;
    return watch(1, { askedMs, redisMs: askedMs + aheadMs });
  };
  // Another gateway may have waited for Redis until now.
  expect([sweeps(-60_000, 500), sweeps(-50_000, 500), sweeps(-40_000, 500)]).toEqual([false, false, false]);
  expect([-30_000, -20_000, -10_000].map((at) => sweeps(at, 500))).toEqual([false, false, false]);
  expect([sweeps(0, 500), sweeps(10_000, 500), sweeps(20_000, 500, 8_000)]).toEqual([true, true, true]);
  expect([30_000, 40_000, 50_000].map((at) => sweeps(at, 500))).toEqual([true, true, true]);
  expect([sweeps(60_000, 500), sweeps(70_000, 5_000)]).toEqual([true, true]);
  expect([sweeps(80_000, -3_600_000), sweeps(90_000, -3_600_000)]).toEqual([true, true]);
  expect([sweeps(100_000, 500), sweeps(110_000, 500), sweeps(120_000, 500)]).toEqual([false, false, false]);
  expect([130_000, 140_000, 150_000, 159_999].map((at) => sweeps(at, 500))).toEqual(Array(4).fill(false));
  expect([160_000, 170_000, 180_000].map((at) => sweeps(at, 500))).toEqual([true, true, true]);
  // No answer for a third of a lease.
  expect([210_000, 220_000, 230_000].map((at) => sweeps(at, 500))).toEqual([false, false, false]);
  expect([240_000, 250_000, 260_000, 270_000].map((at) => sweeps(at, 500))).toEqual([
    false,
    false,
    false,
    true,
  ]);
  // An answer that is late by so much is a silence.
  expect([sweeps(280_000, 500, 30_000), sweeps(320_000, 500)]).toEqual([false, false]);
});
