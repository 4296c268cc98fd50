import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  charge,
  forestall,
  type GrantState,
  keys,
  loadGrant,
  type RedisClient,
  refund,
  settle,
  UNHEARD,
} from '../src/index.ts';
import {
  admitted,
  charged,
  figures,
  loadedGrant,
  newAsk,
  newBudget,
  newCharge,
  newGrant,
  newOutcome,
  newRefund,
} from './grant.ts';
import { drainAll, newLedger, readGrant } from './ledger.ts';
import { type Engine, engines, openPartition } from './redis.ts';
import { restarted } from './snapshot.ts';

/** A refused call, which gets its use and its money back. */
const REFUSED = { uses: 0, costMicrousd: 0 };

describe.each(engines)('refunds to a grant on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  const of = (grant: GrantState) => figures(redis, grant.ref.partition, grant.ref.budgetIds[0]);
  /** Makes a call that the provider refuses. Returns undefined when the call is not admitted. */
  const refused = async (grant: GrantState, gateway = redis, holdMicrousd = 0) => {
    const ask = newAsk({ holdMicrousd });
    const admission = await admit(gateway, grant.ref, ask);
    if (admission.is !== 'admitted') return undefined;
    return settle(gateway, grant.ref, newOutcome(ask.holdId, REFUSED));
  };

  test.each([
    [1, 21],
    [5, 29],
  ])(
    'max_uses %i admits exactly %i calls that are all refused by the provider, over three gateways',
    async (maxUses, most) => {
      const gateways = [redis, await engine.connect(), await engine.connect()];
      const grant = await loadedGrant(redis, await openPartition(redis), { maxUses });
      let passed = 0;
      const loop = async (gateway: RedisClient) => {
        for (let i = 0; i < 100; i++) if (await refused(grant, gateway)) passed += 1;
      };
      await Promise.all([...gateways, ...gateways].map(loop));
      expect(passed).toBe(most);
      expect(await of(grant)).toMatchObject({ used: String(maxUses) });
    },
  );

  test.each([
    [1, 21],
    [5, 29],
  ])(
    'max_uses %i admits exactly %i charges that are all refunded, over three gateways',
    async (maxUses, most) => {
      const gateways = [redis, await engine.connect(), await engine.connect()];
      const grant = await loadedGrant(redis, await openPartition(redis), { maxUses });
      let passed = 0;
      const loop = async (gateway: RedisClient) => {
        for (let i = 0; i < 100; i++) {
          const asked = newCharge({ costMicrousd: 3 });
          if ((await charge(gateway, grant.ref, asked)).is !== 'admitted') continue;
          passed += 1;
          await refund(gateway, grant.ref, newRefund(asked));
        }
      };
      await Promise.all([...gateways, ...gateways].map(loop));
      expect(passed).toBe(most);
      expect(await of(grant)).toEqual({ used: String(maxUses), settled: String(maxUses * 3), held: '0' });
    },
  );

  test('beyond the bound on refunds, a refused call keeps its use and is charged its hold, also in the ledger', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 1, costLimitMicrousd: 100 });
    for (let i = 0; i < 20; i++)
      expect(await refused(grant, redis, 30)).toEqual({ uses: 1, microusd: 100, isKept: false });
    expect(await refused(grant, redis, 30)).toEqual({ uses: 0, microusd: 70, isKept: true });
    expect(await of(grant)).toEqual({ used: '1', settled: '30', held: '0' });
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    expect(ledger.budgets.get(grant.ref.budgetIds[0] ?? '')).toEqual({ used: 1, settled: 30, tokens: 0 });
  });

  test('an admission says whether its call would be refunded in full', async () => {
    const grant = await loadedGrant(redis, await openPartition(redis), { maxUses: 1 });
    for (let i = 0; i < 20; i++) await refused(grant);
    expect(await admit(redis, grant.ref, newAsk())).toMatchObject({ isReturnable: false });
    const other = await loadedGrant(redis, await openPartition(redis), { maxUses: 2 });
    for (let i = 0; i < 20; i++) await refused(other);
    expect(await admit(redis, other.ref, newAsk())).toMatchObject({ isReturnable: true });
  });

  test.each([
    ['the use', { uses: 0, costMicrousd: 0 }],
    ['the money alone', { uses: 1, costMicrousd: 0 }],
  ])('without max_uses, fewer than 20 more calls get %s back than were charged', async (_what, outcome) => {
    const grant = await loadedGrant(redis, await openPartition(redis), { costLimitMicrousd: 1_000_000 });
    const call = async (with_: typeof outcome) => {
      const hold = await admitted(redis, grant, { holdMicrousd: 10 });
      return settle(redis, grant.ref, newOutcome(hold, with_));
    };
    const refuse = async (calls: number) => {
      let back = 0;
      for (let i = 0; i < calls; i++) if (!(await call(outcome))?.isKept) back += 1;
      return back;
    };
    expect(await refuse(19)).toBe(19);
    expect((await call(outcome))?.isKept).toBe(true);
    for (let i = 0; i < 10; i++) await call({ uses: 1, costMicrousd: 10 });
    expect(await refuse(11)).toBe(11);
    expect(await refuse(20)).toBe(10);
  });

  test('a grant without a limit is refunded in full, however often', async () => {
    const grant = await loadedGrant(redis, await openPartition(redis));
    for (let i = 0; i < 60; i++) expect(await refused(grant)).toMatchObject({ isKept: false });
    expect(await of(grant)).toMatchObject({ used: '0' });
  });

  test('a shared budget is refunded as often as the grant’s own budget allows', async () => {
    const partition = await openPartition(redis);
    const shared = newBudget({ maxUses: 1_000, endsWithGrant: false });
    const [grant, other] = [newBudget(), newBudget()].map((own) => newGrant(partition, own, shared));
    if (!grant || !other) throw new Error('no grants');
    for (const each of [grant, other]) await loadGrant(redis, each);
    for (let i = 0; i < 19; i++) expect(await refused(grant)).toMatchObject({ isKept: false });
    expect(await refused(grant)).toMatchObject({ isKept: true });
    expect(await refused(other)).toMatchObject({ isKept: false });
    expect(await figures(redis, partition, shared.id)).toMatchObject({ used: '1' });
  });

  test('calls that were never sent to a provider are refunded, and do not count toward the bound', async () => {
    const grant = await loadedGrant(redis, await openPartition(redis), { maxUses: 1 });
    const wasSent = false;
    for (let i = 0; i < 40; i++) {
      await forestall(redis, grant.ref, await charged(redis, grant));
      await refund(redis, grant.ref, { ...newRefund(await charged(redis, grant)), wasSent });
      const unheard = await admitted(redis, grant);
      await settle(redis, grant.ref, newOutcome(unheard, { ...REFUSED, epoch: UNHEARD }));
      const hold = await admitted(redis, grant, { holdMicrousd: 7 });
      expect(await settle(redis, grant.ref, newOutcome(hold, { ...REFUSED, wasSent }))).toMatchObject({
        isKept: false,
      });
    }
    expect(await of(grant)).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await refused(grant)).toMatchObject({ isKept: false });
  });

  test('an unanswered admission leaves no entry in the stream, and is void if it arrives late', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 3, costLimitMicrousd: 100 });
    const ask = newAsk({ holdMicrousd: 30 });
    await admit(redis, grant.ref, ask);
    for (const _ of [1, 2])
      await settle(redis, grant.ref, newOutcome(ask.holdId, { ...REFUSED, epoch: UNHEARD }));
    expect(await of(grant)).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
    await admit(redis, grant.ref, ask);
    expect(await of(grant)).toEqual({ used: '0', settled: '0', held: '0' });
  });

  test('the refund of a whole batch counts each of its uses', async () => {
    const grant = await loadedGrant(redis, await openPartition(redis), { maxUses: 10 });
    const batch = async (uses: number) =>
      refund(redis, grant.ref, newRefund(await charged(redis, grant, { uses })));
    expect([await batch(10), await batch(10), await batch(10)]).toEqual([true, true, false]);
  });

  test('the count of refunds survives a restart of Redis', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 1 });
    const ledger = newLedger(partition);
    for (let i = 0; i < 20; i++) await refused(grant);
    await restarted(redis, partition);
    await drainAll(redis, ledger);
    expect(await loadGrant(redis, readGrant(ledger, grant))).toBe('ok');
    const hold = await admitted(redis, grant);
    const outcome = newOutcome(hold, { ...REFUSED, epoch: String(ledger.cursor.epoch) });
    expect(await settle(redis, grant.ref, outcome)).toMatchObject({ isKept: true });
    expect(await redis.hget(keys.budget(partition, grant.ref.budgetIds[0] ?? ''), 'returned')).toBe('20');
  });
});
