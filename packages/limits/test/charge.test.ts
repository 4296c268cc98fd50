import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  admit,
  charge,
  keys,
  loadGrant,
  type RedisClient,
  reopen,
  revokeGrant,
  settle,
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
  tally,
} from './grant.ts';
import { drainAll, drainRound, newLedger, readGrant } from './ledger.ts';
import { type Engine, engines, newPartition, openPartition } from './redis.ts';
import { restarted } from './snapshot.ts';

const LARGEST = Number.MAX_SAFE_INTEGER;
const MARKED_S = 300;

describe.each(engines)('charge on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  test('exactly k of n parallel calls pass on max_uses = k, whether charged or held', async () => {
    const gateways = [redis, await engine.connect(), await engine.connect()];
    const partition = await openPartition(redis);
    const { ref } = await loadedGrant(redis, partition, { maxUses: 61 });
    const calls = Array.from({ length: 200 }, (_, i) => {
      const gateway = gateways[i % 3] ?? redis;
      return i % 2 === 0 ? charge(gateway, ref, newCharge()) : admit(gateway, ref, newAsk());
    });
    expect(tally(await Promise.all(calls))).toEqual({ admitted: 61, uses_exhausted: 139 });
    expect(await figures(redis, partition, ref.budgetIds[0])).toMatchObject({ used: '61' });
  });

  test('a charge counts uses and cost in every budget, is in the stream, and holds nothing', async () => {
    const partition = await openPartition(redis);
    const own = newBudget({ maxUses: 5, costLimitMicrousd: 1_000 });
    const budget = newBudget({ maxUses: 9, costLimitMicrousd: 800, endsWithGrant: false });
    const grant = newGrant(partition, own, budget);
    await loadGrant(redis, grant);
    const call = newCharge({ uses: 2, costMicrousd: 300, record: '{"usr":"Zoë ☃"}' });
    expect(await charge(redis, grant.ref, call)).toEqual({
      is: 'admitted',
      epoch: '1',
      credentialVersion: 1,
      usesLeft: 3,
      isReturnable: true,
      places: 0,
      microusdLeft: 700,
      heldMicrousd: 300,
      tokens: 0,
      rateLimits: [],
      limitsCost: true,
      limitsTokens: false,
    });
    for (const { id } of [own, budget]) {
      expect(await figures(redis, partition, id)).toEqual({ used: '2', settled: '300', held: '0' });
    }
    expect(await redis.zcard(keys.leases(partition))).toBe(0);
    const { id: grantId, budgetIds } = grant.ref;
    const { chargeId: holdId, uses, costMicrousd, record } = call;
    const entry = { holdId, grantId, budgetIds, uses, costMicrousd, tokens: 0, outcome: 'settled', record };
    const ledger = newLedger(partition);
    expect(await drainRound(redis, ledger)).toEqual({
      is: 'ok',
      entries: [{ id: expect.any(String), ...entry }],
    });
  });

  test('a charge is counted in both budgets of its grant or in neither, whichever is exhausted', async () => {
    const partition = await openPartition(redis);
    const own = newBudget({ maxUses: 5, costLimitMicrousd: 1_000 });
    const budget = newBudget({ maxUses: 2, costLimitMicrousd: 500, endsWithGrant: false });
    const grant = newGrant(partition, own, budget);
    await loadGrant(redis, grant);
    await charged(redis, grant, { costMicrousd: 200 });
    const now = {
      of: 2,
      limitMicrousd: 500,
      settledMicrousd: 200,
      heldMicrousd: 0,
      neededMicrousd: 301,
      isVisible: false,
    };
    expect(await charge(redis, grant.ref, newCharge({ costMicrousd: 301 }))).toEqual({
      is: 'cost_limit_too_low',
      ...now,
    });
    expect(await charge(redis, grant.ref, newCharge({ uses: 2 }))).toEqual({
      is: 'uses_exhausted',
      of: 2,
      limit: 2,
      used: 1,
      isVisible: false,
    });
    for (const { id } of [own, budget]) {
      expect(await figures(redis, partition, id)).toEqual({ used: '1', settled: '200', held: '0' });
    }
    expect(await redis.xlen(keys.usage(partition))).toBe(1);
  });

  test('open holds leave a charge no room until they are settled, and a charge leaves holds no room', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 100 });
    const ask = (costMicrousd: number) => charge(redis, grant.ref, newCharge({ costMicrousd }));
    const hold = await admitted(redis, grant, { holdMicrousd: 60 });
    const now = { of: 1, limitMicrousd: 100, settledMicrousd: 0, heldMicrousd: 60, isVisible: true };
    expect(await ask(41)).toEqual({ is: 'cost_held', ...now, neededMicrousd: 41 });
    expect(await ask(101)).toEqual({ is: 'cost_limit_too_low', ...now, neededMicrousd: 101 });
    expect(await ask(39)).toMatchObject({ is: 'admitted', microusdLeft: 1 });
    expect(await admit(redis, grant.ref, newAsk({ holdMicrousd: 2 }))).toMatchObject({ is: 'cost_held' });
    await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 1 }));
    expect(await ask(60)).toMatchObject({ is: 'admitted', microusdLeft: 0 });
    expect(await ask(1)).toMatchObject({ is: 'cost_limit_reached', settledMicrousd: 100, heldMicrousd: 0 });
    expect(await ask(0)).toMatchObject({ is: 'admitted', microusdLeft: 0 });
  });

  test('a repeated charge, from any gateway, counts nothing and gets the same answer', async () => {
    const other = await engine.connect();
    const partition = await openPartition(redis);
    const { ref } = await loadedGrant(redis, partition, { maxUses: 2, costLimitMicrousd: 50 });
    const call = newCharge({ uses: 2, costMicrousd: 50 });
    const first = await charge(redis, ref, call);
    expect(first).toMatchObject({ is: 'admitted', usesLeft: 0, microusdLeft: 0 });
    const again = await Promise.all([charge(redis, ref, call), charge(other, ref, call)]);
    expect(again).toEqual([first, first]);
    expect(await figures(redis, partition, ref.budgetIds[0])).toEqual({
      used: '2',
      settled: '50',
      held: '0',
    });
    expect(await redis.xlen(keys.usage(partition))).toBe(1);
  });

  test('a charge in the ledger that is repeated after a restart of Redis counts nothing', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const ledger = newLedger(partition);
    const call = await charged(redis, grant, { costMicrousd: 7 });
    await restarted(redis, partition);
    await drainAll(redis, ledger);
    await loadGrant(redis, readGrant(ledger, grant));
    expect(await charge(redis, grant.ref, call)).toMatchObject({ is: 'admitted', epoch: '2' });
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '1',
      settled: '7',
      held: '0',
    });
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
  });

  test('a charge that is drained and trimmed leaves Redis after 5 minutes', async () => {
    const partition = await openPartition(redis);
    const { chargeId } = await charged(redis, await loadedGrant(redis, partition));
    await drainAll(redis, newLedger(partition));
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
    const seconds = await redis.ttl(keys.hold(partition, chargeId));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(MARKED_S);
  });

  test('a charge without uses or cost writes nothing, and passes when everything is used up', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, {
      maxUses: 1,
      used: 2,
      costLimitMicrousd: 10,
      settledMicrousd: 11,
    });
    const check = newCharge({ uses: 0 });
    const passed = { is: 'admitted', credentialVersion: 1, usesLeft: 0, microusdLeft: 0 };
    expect(await charge(redis, grant.ref, check)).toMatchObject(passed);
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '2',
      settled: '11',
      held: '0',
    });
    const written = [keys.usage(partition), keys.leases(partition), keys.hold(partition, check.chargeId)];
    expect(await Promise.all(written.map((key) => redis.exists(key)))).toEqual([0, 0, 0]);
    await revokeGrant(redis, { ...grant.ref, expiresAtMs: grant.expiresAtMs });
    expect(await charge(redis, grant.ref, check)).toEqual({ is: 'revoked' });
  });

  test('a use without a cost is counted and recorded, and so is a cost without a use', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 1, costLimitMicrousd: 5 });
    const free = await charged(redis, grant, { uses: 1, costMicrousd: 0 });
    const useless = await charged(redis, grant, { uses: 0, costMicrousd: 5 });
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    expect([...ledger.rows.keys()]).toEqual([free.chargeId, useless.chargeId]);
    expect(ledger.budgets.get(grant.ref.budgetIds[0] ?? '')).toEqual({ used: 1, settled: 5, tokens: 0 });
    expect(await charge(redis, grant.ref, newCharge())).toMatchObject({ is: 'uses_exhausted' });
  });

  test('the reply names a closed partition and an unknown or revoked grant, and nothing is written', async () => {
    const partition = newPartition();
    const grant = newGrant(partition, newBudget());
    expect(await charge(redis, grant.ref, newCharge())).toEqual({ is: 'closed' });
    await reopen(redis, partition, 1);
    expect(await charge(redis, grant.ref, newCharge())).toEqual({ is: 'closed' });
    await drainAll(redis, newLedger(partition));
    expect(await charge(redis, grant.ref, newCharge())).toEqual({ is: 'unknown' });
    await loadGrant(redis, grant);
    await redis.hset(keys.credential(partition, grant.ref.credentialId), 'revoked', '1');
    expect(await charge(redis, grant.ref, newCharge())).toEqual({ is: 'credential_revoked' });
    await revokeGrant(redis, { ...grant.ref, expiresAtMs: grant.expiresAtMs });
    expect(await charge(redis, grant.ref, newCharge())).toEqual({ is: 'revoked' });
    expect(await redis.exists(keys.usage(partition))).toBe(0);
  });

  test('figures up to 2^53 - 1 are exact', async () => {
    const partition = await openPartition(redis);
    const half = 4_503_599_627_370_001;
    const before = { used: LARGEST - half - 1, settledMicrousd: LARGEST - half - 1 };
    const limits = { maxUses: LARGEST, costLimitMicrousd: LARGEST, ...before };
    const grant = await loadedGrant(redis, partition, limits);
    const call = newCharge({ uses: half, costMicrousd: half });
    expect(await charge(redis, grant.ref, call)).toMatchObject({ usesLeft: 1, microusdLeft: 1 });
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: String(LARGEST - 1),
      settled: String(LARGEST - 1),
      held: '0',
    });
    const drained = await drainRound(redis, newLedger(partition));
    expect(drained).toMatchObject({ entries: [{ uses: half, costMicrousd: half }] });
  });
});
