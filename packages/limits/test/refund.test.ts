import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  charge,
  drain,
  forestall,
  keys,
  loadGrant,
  type RedisClient,
  refund,
  reopen,
  trim,
} from '../src/index.ts';
import { charged, figures, loadedGrant, newBudget, newCharge, newGrant, newRefund } from './grant.ts';
import { commit, drainAll, drainRound, newLedger, readGrant } from './ledger.ts';
import { type Engine, engines, loseAll, openPartition } from './redis.ts';
import { putBack, restarted, takeSnapshot } from './snapshot.ts';

const LARGEST = Number.MAX_SAFE_INTEGER;
const MARKED_S = 300;

describe.each(engines)('refund on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  async function world(limits = {}) {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, limits);
    const ledger = newLedger(partition);
    const budget = () => figures(redis, partition, grant.ref.budgetIds[0]);
    const sums = () => ledger.budgets.get(grant.ref.budgetIds[0] ?? '');
    const reread = () => loadGrant(redis, readGrant(ledger, grant));
    return { partition, grant, ledger, budget, sums, reread };
  }

  test('refunded uses and money can be used again in every budget, and a refund is its own entry', async () => {
    const partition = await openPartition(redis);
    const budgets = [newBudget({ maxUses: 3, costLimitMicrousd: 300 }), newBudget({ maxUses: 4 })];
    const grant = newGrant(partition, ...budgets);
    const ledger = newLedger(partition);
    await loadGrant(redis, grant);
    const call = await charged(redis, grant, { uses: 3, costMicrousd: 300 });
    const back = newRefund(call, { uses: 2, costMicrousd: 200, record: '{"usr":"Zoë ☃"}' });
    expect(await refund(redis, grant.ref, back)).toBe(true);
    for (const { id } of budgets) {
      expect(await figures(redis, partition, id)).toEqual({ used: '1', settled: '100', held: '0' });
    }
    await drainAll(redis, ledger);
    const { id: grantId, budgetIds } = grant.ref;
    expect([...ledger.rows.keys()]).toEqual([call.chargeId, back.refundId]);
    expect(ledger.rows.get(back.refundId)).toEqual({
      id: expect.any(String),
      ...{ holdId: back.refundId, grantId, budgetIds, tokens: 0, uses: -2, costMicrousd: -200 },
      ...{ outcome: 'refunded', record: back.record },
    });
    for (const { id } of budgets)
      expect(ledger.budgets.get(id)).toEqual({ used: 1, settled: 100, tokens: 0 });
    await charged(redis, grant, { uses: 2, costMicrousd: 200 });
  });

  test('a charge is refunded once, whatever a parallel or later refund says', async () => {
    const other = await engine.connect();
    const { partition, grant, budget } = await world({ maxUses: 2 });
    await charged(redis, grant, { costMicrousd: 30 });
    const call = await charged(redis, grant, { costMicrousd: 30 });
    const back = newRefund(call, { uses: 1, costMicrousd: 10 });
    const tries = Array.from({ length: 20 }, (_, i) => refund(i % 2 ? other : redis, grant.ref, back));
    expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
    expect(await refund(redis, grant.ref, newRefund(call))).toBe(false);
    expect(await forestall(redis, grant.ref, call)).toBe(false);
    expect(await budget()).toEqual({ used: '1', settled: '50', held: '0' });
    expect(await redis.xlen(keys.usage(partition))).toBe(3);
  });

  test('a refund returns at most the charged uses and cost', async () => {
    const { grant, budget } = await world();
    await charged(redis, grant, { uses: 5, costMicrousd: 500 });
    const [one, two] = [
      await charged(redis, grant, { uses: 1, costMicrousd: 30 }),
      await charged(redis, grant, { uses: 2, costMicrousd: 10 }),
    ];
    await refund(redis, grant.ref, newRefund(one, { uses: 2, costMicrousd: 20 }));
    expect(await budget()).toMatchObject({ used: '7', settled: '520' });
    await refund(redis, grant.ref, newRefund(two, { uses: 1, costMicrousd: 11 }));
    expect(await budget()).toMatchObject({ used: '6', settled: '510' });
  });

  test('a refunded charge that is sent again counts nothing', async () => {
    const { partition, grant, budget } = await world();
    const call = await charged(redis, grant, { costMicrousd: 30 });
    await refund(redis, grant.ref, newRefund(call));
    await charge(redis, grant.ref, call);
    expect(await budget()).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await redis.xlen(keys.usage(partition))).toBe(2);
    const seconds = await redis.ttl(keys.hold(partition, call.chargeId));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(MARKED_S);
  });

  test('a forestalled charge counts nothing, whichever arrives first', async () => {
    const { partition, grant, budget, ledger, sums } = await world({ maxUses: 1, costLimitMicrousd: 50 });
    const [first, second] = [newCharge({ costMicrousd: 50 }), newCharge({ costMicrousd: 50 })];
    await charge(redis, grant.ref, first);
    expect(await forestall(redis, grant.ref, first)).toBe(true);
    expect(await forestall(redis, grant.ref, second)).toBe(false);
    await charge(redis, grant.ref, second);
    const none = { used: '0', settled: '0', held: '0' };
    expect(await budget()).toEqual(none);
    // A second try changes nothing, and the ledger gets no row of a call that was never charged.
    for (const call of [first, second]) expect(await forestall(redis, grant.ref, call)).toBe(false);
    expect(await budget()).toEqual(none);
    await drainAll(redis, ledger);
    expect([...ledger.rows.values()].map(({ uses, costMicrousd }) => [uses, costMicrousd])).toEqual([
      [1, 50],
      [-1, -50],
    ]);
    expect(sums()).toEqual({ used: 0, settled: 0, tokens: 0 });
    const seconds = await redis.ttl(keys.hold(partition, second.chargeId));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(MARKED_S);
  });

  test('load counts charges and refunds that the ledger has not reached', async () => {
    const { partition, grant, ledger, budget, reread } = await world();
    await charged(redis, grant, { uses: 1, costMicrousd: 1 });
    const known = await charged(redis, grant, { uses: 2, costMicrousd: 20 });
    await drainRound(redis, ledger);
    await refund(redis, grant.ref, newRefund(known));
    const late = await charged(redis, grant, { uses: 4, costMicrousd: 400 });
    await refund(redis, grant.ref, newRefund(late, { uses: 1, costMicrousd: 300 }));
    await redis.del(keys.budget(partition, grant.ref.budgetIds[0] ?? ''));
    expect(await reread()).toBe('ok');
    expect(await budget()).toEqual({ used: '4', settled: '101', held: '0' });
    await drainAll(redis, ledger);
    expect(await budget()).toEqual({ used: '4', settled: '101', held: '0' });
  });

  test('a refund after Redis restarted changes only budgets of the new epoch', async () => {
    const { partition, grant, ledger, budget, sums, reread } = await world();
    const [early, late] = [
      await charged(redis, grant, { costMicrousd: 3 }),
      await charged(redis, grant, { costMicrousd: 40 }),
    ];
    await restarted(redis, partition);
    await drainRound(redis, ledger);
    expect(await refund(redis, grant.ref, newRefund(early))).toBe(true);
    expect(await budget()).toEqual({ used: '2', settled: '43', held: '0' });
    await drainAll(redis, ledger);
    await reread();
    expect(await budget()).toEqual({ used: '1', settled: '40', held: '0' });
    expect(await refund(redis, grant.ref, newRefund(late))).toBe(true);
    expect(await budget()).toEqual({ used: '0', settled: '0', held: '0' });
    await drainAll(redis, ledger);
    expect(sums()).toEqual({ used: 0, settled: 0, tokens: 0 });
  });

  test('if Redis lost the charge, nothing is refunded', async () => {
    const { partition, grant, ledger, budget, sums, reread } = await world();
    const call = await charged(redis, grant, { costMicrousd: 30 });
    await drainAll(redis, ledger);
    await loseAll(redis, partition);
    expect(await refund(redis, grant.ref, newRefund(call))).toBe(false);
    await drainAll(redis, ledger);
    await reread();
    expect(await forestall(redis, grant.ref, call)).toBe(false);
    await drainAll(redis, ledger);
    expect(await budget()).toEqual({ used: '1', settled: '30', held: '0' });
    expect(sums()).toEqual({ used: 1, settled: 30, tokens: 0 });
  });

  test.each([
    ['refund', refund],
    ['forestall', (client, ref, what) => forestall(client, ref, what)],
  ] as const satisfies readonly (readonly [string, typeof refund])[])(
    'a repeated %s that is in the ledger is counted once on a restored copy',
    async (_what, giveBack) => {
      const { partition, grant, ledger, budget, sums, reread } = await world();
      await charged(redis, grant, { uses: 3, costMicrousd: 100 });
      const call = await charged(redis, grant, { costMicrousd: 30 });
      const back = newRefund(call);
      await drainAll(redis, ledger);
      const older = await takeSnapshot(redis, partition);
      expect(await giveBack(redis, grant.ref, back)).toBe(true);
      await drainAll(redis, ledger);
      await putBack(redis, partition, older);
      await drainAll(redis, ledger);
      await reread();
      expect(await giveBack(redis, grant.ref, back)).toBe(true);
      await drainAll(redis, ledger);
      expect(await budget()).toEqual({ used: '3', settled: '100', held: '0' });
      expect(sums()).toEqual({ used: 3, settled: 100, tokens: 0 });
      expect(ledger.rows.size).toBe(3);
    },
  );

  test('a repeated refund is removed once, from exactly the budgets that counted it', async () => {
    const partition = await openPartition(redis);
    const [early, late] = [newBudget(), newBudget()];
    const grant = newGrant(partition, early, late);
    const ledger = newLedger(partition);
    await loadGrant(redis, grant);
    const call = await charged(redis, grant, { costMicrousd: 30 });
    const back = newRefund(call);
    const older = await takeSnapshot(redis, partition);
    await refund(redis, grant.ref, back);
    await drainAll(redis, ledger);
    await putBack(redis, partition, older);
    await reopen(redis, partition, 2);
    ledger.cursor = { partition, epoch: 2, lastId: '0-0' };
    await drainAll(redis, ledger);
    await loadGrant(redis, readGrant(ledger, newGrant(partition, early)));
    expect(await figures(redis, partition, early.id)).toMatchObject({ used: '0', settled: '0' });
    await refund(redis, grant.ref, back);
    expect(await figures(redis, partition, early.id)).toMatchObject({ used: '-1', settled: '-30' });
    const drained = await drain(redis, ledger.cursor, 10);
    const repeated = commit(ledger, drained.is === 'ok' ? drained.entries : []);
    expect(repeated).toHaveLength(1);
    await loadGrant(redis, readGrant(ledger, newGrant(partition, late)));
    for (let i = 0; i < 2; i++) {
      await trim(redis, ledger.cursor, repeated);
      for (const { id } of [early, late]) {
        expect(await figures(redis, partition, id)).toEqual({ used: '0', settled: '0', held: '0' });
      }
    }
  });

  test('figures up to 2^53 - 1 are exact', async () => {
    const { grant, ledger, budget } = await world();
    const call = await charged(redis, grant, { uses: LARGEST, costMicrousd: LARGEST });
    await refund(redis, grant.ref, newRefund(call, { uses: LARGEST - 1, costMicrousd: LARGEST - 1 }));
    expect(await budget()).toEqual({ used: '1', settled: '1', held: '0' });
    const drained = await drainRound(redis, ledger);
    expect(drained).toMatchObject({ entries: [{}, { uses: 1 - LARGEST, costMicrousd: 1 - LARGEST }] });
  });
});
