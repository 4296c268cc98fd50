import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  findGrant,
  keys,
  loadGrant,
  type RedisClient,
  reopen,
  settle,
  UNHEARD,
} from '../src/index.ts';
import { admitted, figures, loadedGrant, newAsk, newBudget, newGrant, newOutcome, tally } from './grant.ts';
import { type Engine, engines, newPartition, openPartition } from './redis.ts';

const LARGEST = Number.MAX_SAFE_INTEGER;

describe.each(engines)('admit on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  test('exactly k of n parallel calls pass on max_uses = k, over several gateways', async () => {
    const gateways = [redis, await engine.connect(), await engine.connect(), await engine.connect()];
    const partition = await openPartition(redis);
    const { ref } = await loadedGrant(redis, partition, { maxUses: 123 });
    const calls = Array.from({ length: 500 }, (_, i) => admit(gateways[i % 4] ?? redis, ref, newAsk()));
    expect(tally(await Promise.all(calls))).toEqual({ admitted: 123, uses_exhausted: 377 });
    expect(await figures(redis, partition, ref.budgetIds[0])).toMatchObject({ used: '123' });
  });

  test('settled + held never exceeds the cost limit while gateways admit and settle in parallel', async () => {
    const gateways = [redis, await engine.connect(), await engine.connect()];
    const partition = await openPartition(redis);
    const limit = 20_000;
    const { ref } = await loadedGrant(redis, partition, { costLimitMicrousd: limit });
    let highest = 0;
    let settled = 0;
    let busy = true;
    const watch = async () => {
      while (busy) {
        const now = await figures(gateways[2] ?? redis, partition, ref.budgetIds[0]);
        highest = Math.max(highest, Number(now?.settled) + Number(now?.held));
      }
    };
    const caller = async (seed: number) => {
      for (let i = 0; i < 25; i++) {
        const ask = newAsk({ holdMicrousd: ((seed * 7919 + i * 104_729) % 2_000) + 1 });
        const gateway = gateways[(seed + i) % 2] ?? redis;
        if ((await admit(gateway, ref, ask)).is !== 'admitted') continue;
        const cost = Math.floor(((ask.hold?.fixedMicrousd ?? 0) * ((seed + i) % 5)) / 4);
        await settle(gateway, ref, newOutcome(ask.holdId, { costMicrousd: cost }));
        settled += cost;
      }
    };
    const watching = watch();
    await Promise.all(Array.from({ length: 20 }, (_, seed) => caller(seed)));
    busy = false;
    await watching;
    expect(highest).toBeGreaterThan(limit / 2);
    expect(highest).toBeLessThanOrEqual(limit);
    const last = await figures(redis, partition, ref.budgetIds[0]);
    expect(last).toMatchObject({ settled: String(settled), held: '0' });
  });

  test('a call is counted in both budgets of its grant or in neither, whichever is exhausted', async () => {
    const partition = await openPartition(redis);
    const own = newBudget({ maxUses: 5, costLimitMicrousd: 1_000 });
    const budget = newBudget({ maxUses: 2, costLimitMicrousd: 500, endsWithGrant: false });
    const grant = newGrant(partition, own, budget);
    await loadGrant(redis, grant);
    const both = async () =>
      JSON.stringify([await figures(redis, partition, own.id), await figures(redis, partition, budget.id)]);

    await admitted(redis, grant, { holdMicrousd: 200 });
    const one = '{"used":"1","settled":"0","held":"200"}';
    expect(await both()).toBe(`[${one},${one}]`);
    expect(await admit(redis, grant.ref, newAsk({ holdMicrousd: 301 }))).toMatchObject({
      is: 'cost_held',
      of: 2,
    });
    expect(await admit(redis, grant.ref, newAsk({ uses: 2 }))).toEqual({
      is: 'uses_exhausted',
      of: 2,
      limit: 2,
      used: 1,
      isVisible: false,
    });
    expect(await both()).toBe(`[${one},${one}]`);
    // The reply does not contain what a shared budget has left.
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ microusdLeft: 800, usesLeft: 3 });
  });

  test('a refusal says whether other calls hold the money, the rest is too small, or the money is spent', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 100 });
    const ask = (holdMicrousd: number) => admit(redis, grant.ref, newAsk({ holdMicrousd }));
    const hold = await admitted(redis, grant, { holdMicrousd: 60 });
    const now = { of: 1, limitMicrousd: 100, settledMicrousd: 0, heldMicrousd: 60, isVisible: true };
    expect(await ask(100)).toEqual({ is: 'cost_held', ...now, neededMicrousd: 100 });
    expect(await ask(101)).toEqual({ is: 'cost_limit_too_low', ...now, neededMicrousd: 101 });
    await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 60 }));
    expect(await ask(41)).toMatchObject({ is: 'cost_limit_too_low', settledMicrousd: 60, heldMicrousd: 0 });
    await settle(
      redis,
      grant.ref,
      newOutcome(await admitted(redis, grant, { holdMicrousd: 40 }), { costMicrousd: 40 }),
    );
    expect(await ask(1)).toMatchObject({ is: 'cost_limit_reached', settledMicrousd: 100 });
    expect(await ask(0)).toMatchObject({ is: 'admitted', microusdLeft: 0 });
  });

  test('a cost limit of 0 lets only calls through that cost nothing', async () => {
    const partition = await openPartition(redis);
    const { ref } = await loadedGrant(redis, partition, { costLimitMicrousd: 0 });
    expect(await admit(redis, ref, newAsk({ holdMicrousd: 1 }))).toMatchObject({ is: 'cost_limit_reached' });
    expect(await admit(redis, ref, newAsk({ holdMicrousd: 0 }))).toMatchObject({ is: 'admitted' });
  });

  test('a grant without limits reports no remaining uses or money, however much it used', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { used: 7, settledMicrousd: LARGEST - 10 });
    const answer = await admit(redis, grant.ref, newAsk({ holdMicrousd: undefined }));
    expect(answer).toMatchObject({ is: 'admitted', usesLeft: undefined, microusdLeft: undefined });
  });

  test('figures up to 2^53 - 1 stay exact through every script', async () => {
    const partition = await openPartition(redis);
    const half = 4_503_599_627_370_001;
    const grant = await loadedGrant(redis, partition, {
      maxUses: LARGEST,
      used: LARGEST - half - 1,
      costLimitMicrousd: LARGEST,
      settledMicrousd: LARGEST - half - 1,
    });
    const budget = () => figures(redis, partition, grant.ref.budgetIds[0]);
    const hold = await admitted(redis, grant, { uses: half, holdMicrousd: half });
    expect(await budget()).toMatchObject({ used: String(LARGEST - 1), held: String(half) });
    expect(await admit(redis, grant.ref, newAsk({ uses: 2 }))).toEqual({
      is: 'uses_exhausted',
      of: 1,
      limit: LARGEST,
      used: LARGEST - 1,
      isVisible: true,
    });
    expect(await admit(redis, grant.ref, newAsk({ holdMicrousd: 2 }))).toMatchObject({
      limitMicrousd: LARGEST,
      settledMicrousd: LARGEST - half - 1,
      heldMicrousd: half,
    });
    await settle(redis, grant.ref, newOutcome(hold, { uses: 0, costMicrousd: half }));
    expect(await budget()).toEqual({
      used: String(LARGEST - half - 1),
      settled: String(LARGEST - 1),
      held: '0',
    });
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ usesLeft: half, microusdLeft: 1 });
  });

  test('a repeated admission with the same hold id counts nothing and gets the same answer', async () => {
    const partition = await openPartition(redis);
    const { ref } = await loadedGrant(redis, partition, { maxUses: 1, costLimitMicrousd: 50 });
    const ask = newAsk({ holdMicrousd: 50 });
    const first = await admit(redis, ref, ask);
    expect(first).toMatchObject({ is: 'admitted', usesLeft: 0, microusdLeft: 0 });
    expect(await admit(redis, ref, ask)).toEqual(first);
    expect(await figures(redis, partition, ref.budgetIds[0])).toEqual({
      used: '1',
      settled: '0',
      held: '50',
    });
  });

  test('a call that is given up before its admission is answered is refunded, whichever arrives first', async () => {
    const partition = await openPartition(redis);
    const { ref } = await loadedGrant(redis, partition, { maxUses: 1, costLimitMicrousd: 50 });
    const giveUp = (holdId: string) => settle(redis, ref, newOutcome(holdId, { epoch: UNHEARD, uses: 0 }));
    const [first, second] = [newAsk({ holdMicrousd: 50 }), newAsk({ holdMicrousd: 50 })];
    await admit(redis, ref, first);
    await giveUp(first.holdId);
    await giveUp(second.holdId);
    await admit(redis, ref, second);
    expect(await figures(redis, partition, ref.budgetIds[0])).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await redis.zcard(keys.leases(partition))).toBe(0);
    // A second try changes nothing, and the ledger gets no row of calls that were never heard.
    await giveUp(first.holdId);
    await giveUp(second.holdId);
    expect(await figures(redis, partition, ref.budgetIds[0])).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
  });

  test('a partition that is absent or closed lets nothing through', async () => {
    const partition = newPartition();
    const grant = newGrant(partition, newBudget());
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'closed' });
    expect(await loadGrant(redis, grant)).toBe('closed');
    await reopen(redis, partition, 1);
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'closed' });
    expect(await loadGrant(redis, grant)).toBe('closed');
    expect(await findGrant(redis, partition, grant.ref.id)).toBeUndefined();
  });

  test('a partition closed under a loaded grant lets nothing through', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    await admitted(redis, grant);
    await reopen(redis, partition, 2);
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'closed' });
  });

  test('a grant or a part of it that Redis lacks must be loaded first', async () => {
    const partition = await openPartition(redis);
    const grant = newGrant(partition, newBudget(), newBudget());
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'unknown' });
    const parts = [
      keys.grant(partition, grant.ref.id),
      keys.credential(partition, grant.ref.credentialId),
      ...grant.budgets.map((budget) => keys.budget(partition, budget.id)),
    ];
    for (const part of parts) {
      expect(await loadGrant(redis, grant)).toBe('ok');
      await redis.del(part);
      expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'unknown' });
    }
    expect(await loadGrant(redis, grant)).toBe('ok');
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ is: 'admitted' });
  });
});
