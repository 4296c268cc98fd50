import { randomUUID } from 'node:crypto';
import { LIMIT_NAMES, limitKind } from '@presign/schema/limits';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  type BudgetState,
  changeLimits,
  charge,
  countRequest,
  type GrantState,
  keys,
  loadGrant,
  type RedisClient,
} from '../src/index.ts';
import { figures, loadedGrant, newAsk, newBudget, newCharge, newGrant, tally } from './grant.ts';
import { type Engine, engines, openPartition } from './redis.ts';

/** The rate limits that count calls. */
const OF_CALLS = LIMIT_NAMES.flatMap((name) => {
  const { rate, property, field } = limitKind(name);
  if (rate === undefined || rate.unit !== undefined) return [];
  const windowMs = rate.seconds * 1_000;
  return [{ name, property, at: field === 'per_minute' ? 'at' : `${field}_at`, windowMs }];
});

describe.each(engines)('rate limits on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  describe.each(OF_CALLS)('$name', ({ name, property, at, windowMs }) => {
    const budgetKey = ({ ref }: GrantState) => keys.budget(ref.partition, ref.budgetIds[0] ?? '');
    /** As if the grant had last been called so long ago. */
    const wait = (grant: GrantState, ms: number) => redis.hincrby(budgetKey(grant), at, -Math.round(ms));
    const loaded = async (limit: number) =>
      loadedGrant(redis, await openPartition(redis), { [property]: limit });

    test('exactly the allowed number of many simultaneous calls passes at three gateways', async () => {
      const gateways = [redis, await engine.connect(), await engine.connect()];
      const { ref } = await loaded(20);
      const calls = Array.from({ length: 200 }, (_, i) => {
        const gateway = gateways[i % 3] ?? redis;
        return i % 2 === 0 ? charge(gateway, ref, newCharge()) : admit(gateway, ref, newAsk());
      });
      const outcomes = tally(await Promise.all(calls));
      // 20 at once, and of a minute's one more in each 3 s that the burst may take on a busy machine.
      expect(outcomes.admitted).toBeGreaterThanOrEqual(20);
      expect(outcomes.admitted).toBeLessThanOrEqual(windowMs > 60_000 ? 20 : 22);
      expect((outcomes.admitted ?? 0) + (outcomes.rate_limited ?? 0)).toBe(200);
    });

    test('it refills evenly, up to the calls of its window', async () => {
      const grant = await loaded(4);
      const pass = async () => (await admit(redis, grant.ref, newAsk())).is === 'admitted';
      const burst = async () => [await pass(), await pass(), await pass(), await pass(), await pass()];
      expect(await burst()).toEqual([true, true, true, true, false]);
      await wait(grant, windowMs / 2);
      expect(await burst()).toEqual([true, true, false, false, false]);
      await wait(grant, 10 * windowMs);
      expect(await burst()).toEqual([true, true, true, true, false]);
    });

    test('an answer says how many calls are left and when the bucket is full; a refusal says when to retry', async () => {
      const grant = await loaded(2);
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({
        rateLimits: [{ name, limit: 2, left: 1, resetMs: windowMs / 2 }],
      });
      await admit(redis, grant.ref, newAsk());
      const refused = await admit(redis, grant.ref, newAsk());
      expect(refused).toMatchObject({ is: 'rate_limited', rateLimit: { name, limit: 2, left: 0 } });
      const { waitMs, rateLimit } = refused as { waitMs: number; rateLimit: { resetMs: number } };
      expect(waitMs).toBeGreaterThan(windowMs / 3);
      // Each is rounded up from a fraction of its own.
      expect(Math.abs(rateLimit.resetMs - waitMs - windowMs / 2)).toBeLessThanOrEqual(1);
      await wait(grant, waitMs);
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'admitted' });
    });

    test('a call that lacks only a rounding error passes', async () => {
      const grant = await loaded(10);
      // Until the clock has reached this time, nothing is filled.
      const later = Date.now() + 600_000;
      const passes = async (level: string) => {
        await redis.hset(budgetKey(grant), at.replace(/at$/, 'level'), level, at, later);
        return (await admit(redis, grant.ref, newAsk())).is;
      };
      expect(await passes('0.9999999999999999')).toBe('admitted');
      expect(await passes('0.99999')).toBe('rate_limited');
    });

    test('a batch counts each call; a batch with more calls than the limit never passes, and takes nothing', async () => {
      const grant = await loaded(10);
      const batch = (uses: number) => charge(redis, grant.ref, newCharge({ uses }));
      const never = { is: 'batch_over_rate', needed: 11, rateLimit: { name, limit: 10 } };
      expect(await batch(4)).toMatchObject({ is: 'admitted', rateLimits: [{ left: 6 }] });
      expect(await batch(10)).toMatchObject({ is: 'rate_limited', rateLimit: { left: 6 } });
      expect(await batch(11)).toMatchObject(never);
      await wait(grant, windowMs);
      expect(await batch(11)).toMatchObject(never);
      expect(await batch(10)).toMatchObject({ is: 'admitted', rateLimits: [{ left: 0 }] });
      await wait(grant, windowMs / 10);
      expect(await batch(1)).toMatchObject({ is: 'admitted' });
    });

    test('a refused, free or repeated call counts nothing', async () => {
      const partition = await openPartition(redis);
      const budget = newBudget({ costLimitMicrousd: 100, endsWithGrant: false });
      const grant = newGrant(partition, newBudget({ [property]: 3, maxUses: 100 }), budget);
      await loadGrant(redis, grant);
      const refused = await admit(redis, grant.ref, newAsk({ holdMicrousd: 101 }));
      expect(refused.is).toBe('cost_limit_too_low');
      const ask = newAsk();
      for (const left of [2, 2]) {
        expect(await admit(redis, grant.ref, ask)).toMatchObject({ is: 'admitted', rateLimits: [{ left }] });
      }
      await admit(redis, grant.ref, newAsk());
      await admit(redis, grant.ref, newAsk());
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'rate_limited' });
      expect(await charge(redis, grant.ref, newCharge({ uses: 0 }))).toMatchObject({ is: 'admitted' });
      expect(await figures(redis, partition, grant.ref.budgetIds[0])).toMatchObject({ used: '3' });
    });

    test('a charge without uses and cost counts its calls and waits, and leaves nothing in the ledger', async () => {
      const grant = await loaded(2);
      const free = () => charge(redis, grant.ref, newCharge({ uses: 0, costMicrousd: 0, calls: 1 }));
      expect(await free()).toMatchObject({ is: 'admitted', rateLimits: [{ left: 1 }] });
      expect(await free()).toMatchObject({ is: 'admitted', rateLimits: [{ left: 0 }] });
      expect(await free()).toMatchObject({ is: 'rate_limited', waitMs: expect.any(Number) });
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'rate_limited' });
      const { partition, budgetIds } = grant.ref;
      expect(await figures(redis, partition, budgetIds[0])).toMatchObject({ used: '0' });
      expect(await redis.xlen(keys.usage(partition))).toBe(0);
      await wait(grant, windowMs / 2);
      expect(await free()).toMatchObject({ is: 'admitted' });
    });

    test('a permanent refusal takes precedence over a temporary one', async () => {
      const { ref } = await loadedGrant(redis, await openPartition(redis), { [property]: 1, maxUses: 1 });
      await admit(redis, ref, newAsk());
      expect(await admit(redis, ref, newAsk())).toMatchObject({ is: 'uses_exhausted' });
    });

    test('a changed limit judges the next call: the level stays, up to the new limit; without a limit all pass', async () => {
      const grant = await loaded(8);
      const [budget] = grant.budgets as [BudgetState];
      const change = (revision: number, limit: number | null) =>
        changeLimits(
          redis,
          grant.ref.partition,
          { ...budget, revision, [property]: limit },
          grant.expiresAtMs,
        );
      const left = async () => {
        const answer = await admit(redis, grant.ref, newAsk());
        return answer.is === 'admitted' ? answer.rateLimits.map((rate) => rate.left) : answer.is;
      };
      expect(await left()).toEqual([7]);
      await change(2, 2);
      expect(await left()).toEqual([1]);
      await change(3, 9);
      expect(await left()).toEqual([0]);
      await change(4, null);
      for (const _ of [1, 2, 3]) expect(await left()).toEqual([]);
      await change(5, 1);
      await wait(grant, windowMs);
      expect([await left(), await left()]).toEqual([[0], 'rate_limited']);
    });

    test('a clock that goes back neither adds nor takes calls', async () => {
      const grant = await loaded(2);
      await admit(redis, grant.ref, newAsk());
      await wait(grant, -60 * windowMs);
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({
        is: 'admitted',
        rateLimits: [{ left: 0 }],
      });
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'rate_limited' });
      await wait(grant, windowMs / 2);
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'admitted' });
      // An empty bucket does not wait until the clock has caught up.
      await wait(grant, -60 * windowMs);
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'rate_limited' });
      await wait(grant, windowMs / 2);
      expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'admitted' });
    });
  });

  test('a call that one of two limits refuses counts for neither', async () => {
    const grant = await loadedGrant(redis, await openPartition(redis), { callsPerMinute: 3, callsPerDay: 2 });
    const left = async () => {
      const answer = await admit(redis, grant.ref, newAsk());
      return answer.is === 'admitted' ? answer.rateLimits.map((rate) => [rate.name, rate.left]) : answer;
    };
    expect(await left()).toEqual([
      ['calls_per_minute', 2],
      ['calls_per_day', 1],
    ]);
    await left();
    for (const _ of [1, 2])
      expect(await left()).toMatchObject({
        is: 'rate_limited',
        rateLimit: { name: 'calls_per_day', left: 0 },
      });
    await redis.hincrby(
      keys.budget(grant.ref.partition, grant.ref.budgetIds[0] ?? ''),
      'per_day_at',
      -86_400_000,
    );
    expect(await left()).toEqual([
      ['calls_per_minute', 0],
      ['calls_per_day', 1],
    ]);
  });

  test('requests that are not calls are counted the same way, and forgotten once the bucket is full', async () => {
    const partition = await openPartition(redis);
    const id = randomUUID();
    const asked = await Promise.all(Array.from({ length: 50 }, () => countRequest(redis, partition, id, 12)));
    const passed = asked.filter(({ waitMs }) => waitMs === 0);
    expect(passed.length).toBeGreaterThanOrEqual(12);
    expect(passed.length).toBeLessThanOrEqual(13);
    expect(passed[0]).toEqual({
      waitMs: 0,
      rateLimit: { name: 'calls_per_minute', limit: 12, left: 11, resetMs: 5_000 },
    });
    expect(asked.at(-1)).toMatchObject({ rateLimit: { left: 0 } });
    expect(asked.at(-1)?.waitMs).toBeGreaterThan(0);
    await redis.hset(keys.rateLimit(partition, id), 'at', Date.now() + 3_600_000);
    await countRequest(redis, partition, id, 12);
    const at = Number(await redis.hget(keys.rateLimit(partition, id), 'at'));
    expect(at).toBeLessThan(Date.now() + 60_000);
    const lives = await redis.pttl(keys.rateLimit(partition, id));
    expect(lives).toBeGreaterThan(50_000);
    expect(lives).toBeLessThanOrEqual(60_000);
  });
});
