import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  charge,
  countRequest,
  findCredential,
  findEnds,
  forestall,
  type GrantState,
  keys,
  loadGrant,
  narrow,
  type RedisClient,
  refund,
  renew,
  reopen,
  replaceCredential,
  revokeGrant,
  settle,
  sweep,
  withdrawCredential,
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
import { type Engine, hasRedisServer, openPartition, startServer } from './redis.ts';

const FULL = 'OOM command not allowed';

describe.skipIf(!hasRedisServer)('a Redis with full memory', () => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await startServer();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());
  afterEach(() => setLimit(0));

  const setLimit = (bytes: number) => redis.call('CONFIG', 'SET', 'maxmemory', String(bytes));
  /** Makes every command that may take memory fail: a server without data takes more than a megabyte. */
  const fill = async () => {
    await setLimit(1_000_000);
    await expect(redis.set('more', '1')).rejects.toThrow(FULL);
  };
  const of = (grant: GrantState) => figures(redis, grant.ref.partition, grant.ref.budgetIds[0]);

  test('refuses calls, charges and grants, and counts nothing', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 5, costLimitMicrousd: 100 });
    const other = newGrant(partition, newBudget());
    const counts = await redis.dbsize();
    await fill();
    await expect(admit(redis, grant.ref, newAsk({ holdMicrousd: 1 }))).rejects.toThrow(FULL);
    await expect(charge(redis, grant.ref, newCharge())).rejects.toThrow(FULL);
    await expect(loadGrant(redis, other)).rejects.toThrow(FULL);
    expect(await of(grant)).toEqual({ used: '0', settled: '0', held: '0' });
    expect(await redis.dbsize()).toBe(counts);
  });

  test('refuses even a call without uses or cost', async () => {
    const grant = await loadedGrant(redis, await openPartition(redis), { maxUses: 1 });
    const free = newCharge({ uses: 0 });
    expect(await charge(redis, grant.ref, free)).toMatchObject({ is: 'admitted' });
    await fill();
    await expect(charge(redis, grant.ref, free)).rejects.toThrow(FULL);
    await expect(admit(redis, grant.ref, newAsk({ uses: 0 }))).rejects.toThrow(FULL);
  });

  test('narrows holds, and settles calls and expired leases', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 1_000 });
    const hold = await admitted(redis, grant, { holdMicrousd: 100 });
    await admitted(redis, grant, { holdMicrousd: 100, leaseMs: 0 });
    await fill();
    expect(await narrow(redis, grant.ref, hold, 40)).toBe(60);
    expect(
      await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 30, lastCall: '{}' })),
    ).toBeDefined();
    expect(await sweep(redis, [partition])).toBe(1);
    expect(await of(grant)).toEqual({ used: '2', settled: '130', held: '0' });
    expect(await redis.xlen(keys.usage(partition))).toBe(2);
  });

  test("records the last call's failure, and clears it after a success", async () => {
    const grant = await loadedGrant(redis, await openPartition(redis), { maxUses: 3 });
    const [failed, passed] = [await admitted(redis, grant), await admitted(redis, grant)];
    const lastCall = JSON.stringify({ status: 500, code: null, at: 1 });
    const remembered = () =>
      redis.hget(keys.budget(grant.ref.partition, grant.ref.budgetIds[0] ?? ''), 'last_call');
    await fill();
    await settle(redis, grant.ref, newOutcome(failed, { lastCall }));
    expect(await remembered()).toBe(lastCall);
    await settle(redis, grant.ref, newOutcome(passed));
    expect(await remembered()).toBeNull();
  });

  test('voids a call whose admission was not answered', async () => {
    const grant = await loadedGrant(redis, await openPartition(redis));
    const ask = newAsk();
    await fill();
    expect(await settle(redis, grant.ref, newOutcome(ask.holdId, { epoch: '' }))).toBeUndefined();
    await setLimit(0);
    await admit(redis, grant.ref, ask);
    expect(await of(grant)).toEqual({ used: '0', settled: '0', held: '0' });
  });

  test('refunds charges, and forestalls late ones', async () => {
    const grant = await loadedGrant(redis, await openPartition(redis), { maxUses: 3 });
    const [first, second] = [await charged(redis, grant), await charged(redis, grant)];
    await fill();
    expect(await refund(redis, grant.ref, newRefund(first))).toBe(true);
    expect(await forestall(redis, grant.ref, second)).toBe(true);
    expect(await forestall(redis, grant.ref, newCharge())).toBe(false);
    expect(await of(grant)).toEqual({ used: '0', settled: '0', held: '0' });
  });

  test('renews leases', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const hold = await admitted(redis, grant, { leaseMs: 0 });
    await fill();
    expect(await renew(redis, partition, 60_000, [hold])).toBe(1);
    expect(await sweep(redis, [partition])).toBe(0);
  });

  test('writes tombstones, also for grants and credentials that Redis lacks', async () => {
    const partition = await openPartition(redis);
    const [known, unknown, withdrawn, elsewhere] = [
      await loadedGrant(redis, partition),
      newGrant(partition, newBudget()),
      await loadedGrant(redis, partition),
      newGrant(partition, newBudget()),
    ];
    await fill();
    for (const { ref, expiresAtMs } of [known, unknown]) await revokeGrant(redis, { ...ref, expiresAtMs });
    for (const { ref } of [withdrawn, elsewhere])
      await withdrawCredential(redis, ref.credentialId, [partition]);
    const all = [known, unknown, withdrawn, elsewhere].map(({ ref }) => ref);
    expect(await findEnds(redis, partition, all)).toEqual(all.map(({ id }) => ({ id, why: 'revoked' })));
    expect(await findCredential(redis, partition, withdrawn.ref.credentialId)).toBeUndefined();
  });

  test('takes a new version of a credential', async () => {
    const partition = await openPartition(redis);
    const { credentialId: id } = (await loadedGrant(redis, partition)).ref;
    await fill();
    await replaceCredential(redis, { id, version: 2, sealed: 'k1.second' }, [partition]);
    expect(await findCredential(redis, partition, id)).toEqual({ version: 2, sealed: 'k1.second' });
  });

  test('counts the requests of an API key', async () => {
    const partition = await openPartition(redis);
    await fill();
    expect(await countRequest(redis, partition, 'key', 1)).toMatchObject({ waitMs: 0 });
    expect((await countRequest(redis, partition, 'key', 1)).waitMs).toBeGreaterThan(0);
  });

  test('drains, trims and begins an epoch with the holds of the last one', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 1_000 });
    const ledger = newLedger(partition);
    const hold = await admitted(redis, grant, { holdMicrousd: 100 });
    await settle(redis, grant.ref, newOutcome(await admitted(redis, grant)));
    await fill();
    await drainAll(redis, ledger);
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
    await reopen(redis, partition, 2);
    ledger.cursor = { partition, epoch: 2, lastId: '0-0' };
    expect(await drainAll(redis, ledger)).toEqual(['ok']);
    await setLimit(0);
    expect(await loadGrant(redis, readGrant(ledger, grant))).toBe('ok');
    expect(await of(grant)).toEqual({ used: '2', settled: '0', held: '100' });
    expect(await settle(redis, grant.ref, newOutcome(hold))).toBeDefined();
  });

  test('empties once the calls in flight are settled and drained, and admits again', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const record = JSON.stringify({ prv: 'x'.repeat(2_000) });
    const before = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
    await setLimit(before + 1_000_000);
    const holds: string[] = [];
    await expect(
      (async () => {
        for (;;) holds.push(await admitted(redis, grant, { record }));
      })(),
    ).rejects.toThrow(FULL);
    expect(holds.length).toBeGreaterThan(100);
    for (const hold of holds) await settle(redis, grant.ref, newOutcome(hold, { record }));
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    expect([...ledger.rows.keys()].sort()).toEqual(holds.sort());
    await admitted(redis, grant);
    expect(await of(grant)).toMatchObject({ used: String(holds.length + 1) });
  });

  test('that fills and empties under parallel calls loses no call and exceeds no limit', async () => {
    const gateways = [redis, await engine.connect(), await engine.connect()];
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 150, costLimitMicrousd: 1_000_000 });
    const ledger = newLedger(partition);
    const passed: string[] = [];
    let refused = 0;
    const call = async (i: number) => {
      const gateway = gateways[i % gateways.length] ?? redis;
      const ask = newAsk({ holdMicrousd: 10 });
      const admission = await admit(gateway, grant.ref, ask).catch(() => undefined);
      if (!admission) refused += 1;
      if (admission?.is !== 'admitted') return;
      passed.push(ask.holdId);
      await settle(gateway, grant.ref, newOutcome(ask.holdId, { costMicrousd: 4 }));
    };
    for (let round = 0; round < 20 || passed.length < 150; round++) {
      const calls = Array.from({ length: 30 }, (_, i) => call(i));
      await setLimit(round % 2 === 0 ? 1_000_000 : 0);
      await Promise.all(calls);
      await drainAll(redis, ledger);
    }
    expect(refused).toBeGreaterThan(0);
    expect(passed).toHaveLength(150);
    expect([...ledger.rows.keys()].sort()).toEqual(passed.sort());
    expect(await of(grant)).toEqual({ used: '150', settled: '600', held: '0' });
  });
});
