import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  type BudgetState,
  changeLimits,
  charge,
  checkGrant,
  drain,
  expire,
  type GrantRef,
  type GrantState,
  keys,
  leave,
  loadGrant,
  type RedisClient,
  refund,
  renew,
  reopen,
  settle,
} from '../src/index.ts';
import {
  loadedGrant,
  newAsk,
  newBudget,
  newCharge,
  newGrant,
  newOutcome,
  newRefund,
  tally,
} from './grant.ts';
import { type Engine, engines, openPartition } from './redis.ts';

describe.each(engines)('concurrent_calls on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  let other: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
    other = await engine.connect();
  });
  afterAll(() => engine.close());
  const loaded = async (concurrentCalls: number) =>
    loadedGrant(redis, await openPartition(redis), { concurrentCalls, maxUses: 10_000 });
  const active = async ({ partition, budgetIds }: GrantRef) =>
    Number(await redis.hget(keys.budget(partition, budgetIds[0] ?? ''), 'active'));
  const placed = (leaseMs = 60_000) => ({ ...newCharge(), leaseMs });

  test('exactly 7 of 100 parallel calls are in flight over two gateways, and each end admits one more', async () => {
    const { ref } = await loaded(7);
    const asks = Array.from({ length: 100 }, () => newAsk());
    const answers = await Promise.all(asks.map((ask, i) => admit(i % 2 ? redis : other, ref, ask)));
    expect(tally(answers)).toEqual({ admitted: 7, concurrency_limited: 93 });
    expect(answers.find(({ is }) => is === 'concurrency_limited')).toMatchObject({ limit: 7, active: 7 });
    const running = asks.filter((_, i) => answers[i]?.is === 'admitted');
    for (const { holdId } of running) {
      await settle(other, ref, newOutcome(holdId));
      expect((await admit(redis, ref, newAsk())).is).toBe('admitted');
      expect((await admit(redis, ref, newAsk())).is).toBe('concurrency_limited');
    }
  });

  test('a settle, a settle that returns the use, and the end of a lease each free one place once', async () => {
    const { ref } = await loaded(3);
    const [kept, returned, dead] = [newAsk(), newAsk(), newAsk({ leaseMs: -1 })];
    for (const ask of [kept, returned, dead]) expect((await admit(redis, ref, ask)).is).toBe('admitted');
    for (const _ of [1, 2]) await settle(redis, ref, newOutcome(kept.holdId));
    expect(await active(ref)).toBe(2);
    for (const _ of [1, 2]) await settle(redis, ref, newOutcome(returned.holdId, { uses: 0 }));
    expect(await active(ref)).toBe(1);
    for (const _ of [1, 2]) await expire(redis, ref.partition, dead.holdId);
    expect(await active(ref)).toBe(0);
  });

  test('a charged call keeps its places through a refund, until it ends or its lease ends', async () => {
    const { ref } = await loaded(2);
    const [first, second] = [placed(), placed()];
    for (const each of [first, second]) expect((await charge(redis, ref, each)).is).toBe('admitted');
    // The same charge again, as a Cluster client sends it, takes nothing.
    expect(await charge(other, ref, first)).toMatchObject({ is: 'admitted', places: 1 });
    expect((await charge(redis, ref, placed())).is).toBe('concurrency_limited');
    expect((await charge(redis, ref, { ...placed(), uses: 0, calls: 1 })).is).toBe('concurrency_limited');
    expect(await refund(redis, ref, newRefund(first))).toBe(true);
    expect(await active(ref)).toBe(2);
    for (const _ of [1, 2]) await leave(redis, ref, first.chargeId);
    expect(await active(ref)).toBe(1);
    await renew(redis, ref.partition, -1_000, [second.chargeId]);
    for (const _ of [1, 2]) await expire(redis, ref.partition, second.chargeId);
    expect(await active(ref)).toBe(0);
    // Neither end is a call, so the ledger has the two charges and the refund.
    const drained = await drain(redis, { partition: ref.partition, epoch: 1, lastId: '0-0' }, 10);
    expect('entries' in drained && drained.entries.map(({ outcome }) => outcome)).toEqual([
      'settled',
      'settled',
      'refunded',
    ]);
  });

  test('a batch takes a place for each call, and the places never exceed the limit', async () => {
    const { ref } = await loaded(3);
    expect(await charge(redis, ref, { ...placed(), calls: 4 })).toMatchObject({ limit: 3, needed: 4 });
    const batch = { ...placed(), calls: 2 };
    expect(await charge(redis, ref, batch)).toMatchObject({ is: 'admitted', places: 2 });
    expect((await charge(redis, ref, { ...placed(), calls: 2 })).is).toBe('concurrency_limited');
    await leave(redis, ref, batch.chargeId);
    expect(await active(ref)).toBe(0);
  });

  const change = (
    { ref, budgets, expiresAtMs }: GrantState,
    revision: number,
    concurrentCalls: number | null,
  ) =>
    changeLimits(
      redis,
      ref.partition,
      { ...(budgets[0] as BudgetState), revision, concurrentCalls },
      expiresAtMs,
    );
  const pass = async ({ ref }: GrantState) => {
    const asked = newAsk();
    const { is } = await admit(redis, ref, asked);
    return is === 'admitted' ? asked.holdId : is;
  };

  test('a lowered limit lets the calls in flight end, and admits none until fewer are left', async () => {
    const grant = await loaded(3);
    const running = [await pass(grant), await pass(grant), await pass(grant)];
    await change(grant, 2, 1);
    for (const holdId of running) {
      expect(await pass(grant)).toBe('concurrency_limited');
      await settle(redis, grant.ref, newOutcome(holdId));
    }
    expect(await active(grant.ref)).toBe(0);
    await pass(grant);
    expect(await pass(grant)).toBe('concurrency_limited');
    await change(grant, 3, 2);
    await pass(grant);
    expect(await pass(grant)).toBe('concurrency_limited');
  });

  test('without the limit calls take no place, and earlier calls free theirs; a new limit counts calls in flight', async () => {
    const grant = await loaded(2);
    const placed = await pass(grant);
    await change(grant, 2, null);
    const free = await Promise.all([1, 2, 3].map(() => pass(grant)));
    await change(grant, 3, 1);
    expect(await pass(grant)).toBe('concurrency_limited');
    for (const holdId of free) await settle(redis, grant.ref, newOutcome(holdId));
    expect(await pass(grant)).toBe('concurrency_limited');
    await settle(redis, grant.ref, newOutcome(placed));
    expect(await active(grant.ref)).toBe(0);
    expect(await pass(grant)).not.toBe('concurrency_limited');
  });

  test('a check reads the limit and takes no place, and a URL without the limit takes no place', async () => {
    const { ref } = await loaded(1);
    const check = () => checkGrant(redis, ref, { uses: 1, spends: false });
    expect((await check()).is).toBe('admitted');
    expect((await check()).is).toBe('admitted');
    expect((await admit(redis, ref, newAsk())).is).toBe('admitted');
    expect((await check()).is).toBe('concurrency_limited');
    const free = await loadedGrant(redis, await openPartition(redis));
    expect(await admit(redis, free.ref, newAsk())).toMatchObject({ is: 'admitted', places: 0 });
    expect(await charge(redis, free.ref, placed())).toMatchObject({ is: 'admitted', places: 0 });
  });

  test.each([2, null])(
    'calls in flight keep their places in a new epoch if the limit is %s',
    async (limit) => {
      const partition = await openPartition(redis);
      const grant = newGrant(partition, newBudget({ concurrentCalls: 2, maxUses: 10 }));
      await loadGrant(redis, grant);
      const [held, paid] = [newAsk(), placed()];
      await admit(redis, grant.ref, held);
      await charge(redis, grant.ref, paid);
      await reopen(redis, partition, 2);
      let cursor = { partition, epoch: 2, lastId: '0-0' };
      for (let rounds = 0; rounds < 5; rounds++) {
        const drained = await drain(redis, cursor, 10);
        if (drained.is === 'ok') cursor = { ...cursor, lastId: drained.entries.at(-1)?.id ?? cursor.lastId };
      }
      const read = { ...grant, epoch: 2, lastId: cursor.lastId };
      const budget = { ...(read.budgets[0] as BudgetState), revision: 2, concurrentCalls: limit, used: 1 };
      expect(await loadGrant(redis, { ...read, budgets: [budget] })).toBe('ok');
      expect(await active(grant.ref)).toBe(2);
      await leave(redis, grant.ref, paid.chargeId);
      await settle(redis, grant.ref, newOutcome(held.holdId));
      expect(await active(grant.ref)).toBe(0);
      await change(grant, 3, 1);
      await pass(grant);
      expect(await pass(grant)).toBe('concurrency_limited');
    },
  );
});
