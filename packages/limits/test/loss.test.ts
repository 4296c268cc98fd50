import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  drain,
  keys,
  loadGrant,
  type RedisClient,
  readFigures,
  reopen,
  revokeGrant,
  settle,
  sweep,
  trim,
} from '../src/index.ts';
import { admitted, figures, loadedGrant, newAsk, newBudget, newGrant, newOutcome } from './grant.ts';
import { commit, drainAll, drainRound, newLedger, readGrant } from './ledger.ts';
import { type Engine, engines, loseAll, openPartition } from './redis.ts';
import { putBack, restarted, takeSnapshot } from './snapshot.ts';

describe.each(engines)('a loss of data on %s', (_name, start) => {
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
    const call = async (costMicrousd: number) => {
      const hold = await admitted(redis, grant, { holdMicrousd: costMicrousd });
      await settle(redis, grant.ref, newOutcome(hold, { costMicrousd }));
      return hold;
    };
    const reread = () => loadGrant(redis, readGrant(ledger, grant));
    return { partition, grant, ledger, budget, call, reread };
  }

  test('a FLUSHALL is reported as a loss, and no call passes until the partition is drained again', async () => {
    const { partition, grant, ledger, budget, call, reread } = await world({ maxUses: 3 });
    await call(1);
    await drainAll(redis, ledger);
    await loseAll(redis, partition);
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'closed' });
    expect(await drainRound(redis, ledger)).toEqual({ is: 'lost' });
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'closed' });
    expect(await reread()).toBe('closed');
    expect(await drainRound(redis, ledger)).toEqual({ is: 'ok', entries: [] });
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'unknown' });
    expect(await reread()).toBe('ok');
    expect(await budget()).toEqual({ used: '1', settled: '1', held: '0' });
  });

  test('an older copy restored into the same process is reported as a loss if the ledger is ahead of it', async () => {
    const { partition, ledger, call } = await world();
    await call(1);
    await drainAll(redis, ledger);
    const run = (await redis.hget(keys.partition(partition), 'run')) ?? '';
    const older = await takeSnapshot(redis, partition);
    await call(2);
    await drainAll(redis, ledger);
    await putBack(redis, partition, older);
    await redis.hset(keys.partition(partition), 'run', run);
    expect(await drain(redis, ledger.cursor, 10)).toEqual({ is: 'lost' });
  });

  test('another Redis process is reported as a loss even if the ledger had none of the missing data', async () => {
    const { partition, grant, ledger } = await world();
    const older = await takeSnapshot(redis, partition);
    await revokeGrant(redis, { ...grant.ref, expiresAtMs: grant.expiresAtMs });
    await putBack(redis, partition, older);
    await admitted(redis, grant);
    expect(await drainRound(redis, ledger)).toEqual({ is: 'lost' });
    await drainAll(redis, ledger);
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'unknown' });
  });

  test('budgets of an older epoch are not used: they are restored from the ledger and the stream', async () => {
    const { partition, grant, ledger, budget, call, reread } = await world({ costLimitMicrousd: 1_000 });
    await call(1);
    const older = await takeSnapshot(redis, partition);
    await call(10);
    await drainAll(redis, ledger);
    await putBack(redis, partition, older);
    expect(await budget()).toMatchObject({ used: '1', settled: '1' });
    await drainAll(redis, ledger);
    expect(await admit(redis, grant.ref, newAsk())).toEqual({ is: 'unknown' });
    expect(await readFigures(redis, grant.ref)).toEqual([undefined]);
    expect(await reread()).toBe('ok');
    expect(await budget()).toEqual({ used: '2', settled: '11', held: '0' });
    expect(await readFigures(redis, grant.ref)).toMatchObject([{ used: 2, settledMicrousd: 11 }]);
    expect(ledger.rows.size).toBe(2);
    await call(100);
    await drainAll(redis, ledger);
    expect(ledger.budgets.get(grant.ref.budgetIds[0] ?? '')).toEqual({ used: 3, settled: 111, tokens: 0 });
  });

  test('undrained entries that survived the loss are drained before the partition opens', async () => {
    const { partition, grant, ledger, budget, call, reread } = await world();
    for (const cost of [1, 10, 100]) await call(cost);
    await restarted(redis, partition);
    await drainRound(redis, ledger, 1);
    for (let left = 3; left > 0; left--) {
      expect(await drainRound(redis, ledger, 1)).toMatchObject({ is: 'ok', entries: [expect.anything()] });
      expect(await reread()).toBe('closed');
    }
    await drainRound(redis, ledger, 1);
    expect(await reread()).toBe('ok');
    expect(await budget()).toEqual({ used: '3', settled: '111', held: '0' });
    expect(grant.ref.budgetIds.map((id) => ledger.budgets.get(id))).toEqual([
      { used: 3, settled: 111, tokens: 0 },
    ]);
  });

  test('calls in flight that survived the loss stay counted and held in the new epoch', async () => {
    const { partition, grant, ledger, budget, reread } = await world({
      maxUses: 3,
      costLimitMicrousd: 1_000,
    });
    const first = await admitted(redis, grant, { holdMicrousd: 400 });
    const second = await admitted(redis, grant, { holdMicrousd: 500 });
    await restarted(redis, partition);
    await drainAll(redis, ledger);
    await settle(redis, grant.ref, newOutcome(first, { costMicrousd: 300 }));
    expect(await reread()).toBe('ok');
    expect(await budget()).toEqual({ used: '2', settled: '300', held: '500' });
    expect(await admit(redis, grant.ref, newAsk({ holdMicrousd: 201 }))).toMatchObject({ is: 'cost_held' });
    await settle(redis, grant.ref, newOutcome(second, { uses: 0, costMicrousd: 0 }));
    expect(await budget()).toEqual({ used: '1', settled: '300', held: '0' });
    expect(await redis.exists(keys.survivors(partition))).toBe(0);
  });

  test('rate limits keep their level in the new epoch, unless Redis has lost their budget', async () => {
    const limits = { callsPerMinute: 9, callsPerDay: 5, tokensPerMinute: 4 };
    const { partition, grant, ledger, reread } = await world(limits);
    const key = keys.budget(partition, grant.ref.budgetIds[0] ?? '');
    const spent = ['level', 'at', 'per_day_level', 'per_day_at', 'token_level', 'token_at'];
    for (let i = 0; i < 4; i++) await admitted(redis, grant, { worstTokens: 1 });
    const before = await redis.hmget(key, ...spent);
    await restarted(redis, partition);
    await drainAll(redis, ledger);
    expect(await reread()).toBe('ok');
    expect(await redis.hmget(key, ...spent)).toEqual(before);
    expect(before).not.toContain(null);
    await admitted(redis, grant, { worstTokens: 0 });
    const refused = await admit(redis, grant.ref, newAsk({ worstTokens: 0 }));
    expect(refused).toMatchObject({ is: 'rate_limited', rateLimit: { name: 'calls_per_day', left: 0 } });
    await redis.del(key);
    expect(await reread()).toBe('ok');
    await admitted(redis, grant, { worstTokens: 4 });
  });

  test('a surviving hold of a dead gateway is settled in full, once, in any later epoch', async () => {
    const { partition, grant, ledger, budget, reread } = await world({ costLimitMicrousd: 1_000 });
    await admitted(redis, grant, { holdMicrousd: 400, leaseMs: 0 });
    for (let epoch = 2; epoch <= 3; epoch++) {
      await restarted(redis, partition);
      await drainAll(redis, ledger);
      expect(await reread()).toBe('ok');
      expect(await budget()).toEqual({ used: '1', settled: '0', held: '400' });
    }
    expect(await sweep(redis, [partition])).toBe(1);
    await drainAll(redis, ledger);
    expect(await budget()).toEqual({ used: '1', settled: '400', held: '0' });
    expect(ledger.budgets.get(grant.ref.budgetIds[0] ?? '')).toEqual({ used: 1, settled: 400, tokens: 0 });
  });

  test('more surviving holds than one script can take are all kept', async () => {
    const { partition, grant, ledger, budget, reread } = await world({ costLimitMicrousd: 10_000 });
    // A few at a time: a busy machine would not answer all of them within a command's time limit.
    for (let i = 0; i < 21; i++) {
      await Promise.all(Array.from({ length: 50 }, () => admitted(redis, grant, { holdMicrousd: 2 })));
    }
    await restarted(redis, partition);
    await drainAll(redis, ledger);
    expect(await reread()).toBe('ok');
    expect(await budget()).toEqual({ used: '1050', settled: '0', held: '2100' });
  });

  test('the settle of a call whose hold was lost is counted once, even if tried twice', async () => {
    const { partition, grant, ledger, budget, reread } = await world({ costLimitMicrousd: 1_000 });
    const hold = await admitted(redis, grant, { holdMicrousd: 400 });
    await loseAll(redis, partition);
    await drainAll(redis, ledger);
    expect(await reread()).toBe('ok');
    expect(await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 250 }))).toBeDefined();
    expect(await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 250 }))).toBeUndefined();
    expect(await budget()).toEqual({ used: '1', settled: '250', held: '0' });
    await drainAll(redis, ledger);
    expect(ledger.budgets.get(grant.ref.budgetIds[0] ?? '')).toEqual({ used: 1, settled: 250, tokens: 0 });
    expect(await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 250 }))).toBeUndefined();
  });

  test('a settle that reaches an empty Redis is kept for the ledger', async () => {
    const { partition, grant, ledger, budget, reread } = await world();
    const hold = await admitted(redis, grant, { holdMicrousd: 400 });
    await loseAll(redis, partition);
    expect(await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 250 }))).toBeDefined();
    await drainAll(redis, ledger);
    expect(ledger.rows.get(hold)).toMatchObject({ costMicrousd: 250 });
    expect(await reread()).toBe('ok');
    expect(await budget()).toEqual({ used: '1', settled: '250', held: '0' });
  });

  test('a call in the ledger that a restored copy settles again is counted once everywhere', async () => {
    const { partition, grant, ledger, budget, reread } = await world({ costLimitMicrousd: 1_000 });
    const hold = await admitted(redis, grant, { holdMicrousd: 400, leaseMs: 0 });
    const older = await takeSnapshot(redis, partition);
    await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 250 }));
    await drainAll(redis, ledger);
    await putBack(redis, partition, older);
    await drainAll(redis, ledger);
    await reread();
    expect(await budget()).toEqual({ used: '2', settled: '250', held: '400' });
    expect(await sweep(redis, [partition])).toBe(1);
    await drainAll(redis, ledger);
    expect(await budget()).toEqual({ used: '1', settled: '250', held: '0' });
    expect(ledger.rows.get(hold)).toMatchObject({ costMicrousd: 250, outcome: 'settled' });
  });

  test('a repeated call is removed once, from exactly the budgets that counted it', async () => {
    const partition = await openPartition(redis);
    const [early, late] = [newBudget(), newBudget()];
    const grant = newGrant(partition, early, late);
    const ledger = newLedger(partition);
    await loadGrant(redis, grant);
    const hold = await admitted(redis, grant);
    await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 250 }));
    await drainAll(redis, ledger);
    await reopen(redis, partition, 2);
    ledger.cursor = { partition, epoch: 2, lastId: '0-0' };
    await drainAll(redis, ledger);
    await loadGrant(redis, readGrant(ledger, newGrant(partition, early)));
    await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 250 }));
    expect(await figures(redis, partition, early.id)).toMatchObject({ used: '2', settled: '500' });
    const drained = await drain(redis, ledger.cursor, 10);
    const repeated = commit(ledger, drained.is === 'ok' ? drained.entries : []);
    expect(repeated).toHaveLength(1);
    await loadGrant(redis, readGrant(ledger, newGrant(partition, late)));
    const further = { ...ledger.cursor, lastId: `${Number(ledger.cursor.lastId.split('-')[0]) + 1}-0` };
    for (const cursor of [ledger.cursor, ledger.cursor, further]) {
      await trim(redis, cursor, repeated);
      for (const budget of [early, late]) {
        expect(await figures(redis, partition, budget.id)).toEqual({ used: '1', settled: '250', held: '0' });
      }
    }
  });

  test('a correction for an entry that Redis lost is not applied to the next epoch', async () => {
    const { partition, ledger, budget, call, reread } = await world();
    await call(250);
    const drained = await drain(redis, ledger.cursor, 10);
    const lost = drained.is === 'ok' ? drained.entries : [];
    await loseAll(redis, partition);
    await drainAll(redis, ledger);
    await reread();
    await call(3);
    await drainAll(redis, ledger);
    await call(4);
    await trim(redis, { ...ledger.cursor, lastId: `${Date.now() + 60_000}-0` }, lost);
    expect(await budget()).toEqual({ used: '2', settled: '7', held: '0' });
  });
});
