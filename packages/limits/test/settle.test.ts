import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admit, fixedHold, keys, type RedisClient, readFigures, settle, UNHEARD } from '../src/index.ts';
import { admitted, figures, loadedGrant, newAsk, newHoldId, newOutcome } from './grant.ts';
import { drainAll, drainRound, newLedger } from './ledger.ts';
import { type Engine, engines, keysOf, openPartition } from './redis.ts';

describe.each(engines)('settle on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  test('the hold becomes the cost of the call, and the call is in the stream', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 1_000 });
    const holdId = await admitted(redis, grant, { holdMicrousd: 400 });
    const record = '{"prv":"sandbox","usr":"Zoë ☃"}';
    expect(await settle(redis, grant.ref, newOutcome(holdId, { costMicrousd: 123, record }))).toBeDefined();
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '1',
      settled: '123',
      held: '0',
    });
    const drained = await drainRound(redis, newLedger(partition));
    const { id: grantId, budgetIds } = grant.ref;
    const call = {
      holdId,
      grantId,
      budgetIds,
      uses: 1,
      costMicrousd: 123,
      tokens: 0,
      outcome: 'settled',
      record,
    };
    expect(drained).toEqual({ is: 'ok', entries: [{ id: expect.any(String), ...call }] });
  });

  test('a second settle changes nothing, in parallel or later, whatever it says', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 1_000 });
    const hold = await admitted(redis, grant, { holdMicrousd: 400 });
    const tries = Array.from({ length: 20 }, () =>
      settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 100 })),
    );
    expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
    expect(await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 399, uses: 0 }))).toBeUndefined();
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '1',
      settled: '100',
      held: '0',
    });
    expect(await redis.xlen(keys.usage(partition))).toBe(1);
  });

  test('refusals report how the last call failed, until a call succeeds', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 3, costLimitMicrousd: 100 });
    const end = async (ended: object) =>
      settle(redis, grant.ref, newOutcome(await admitted(redis, grant, { holdMicrousd: 10 }), ended));
    const refused = () => admit(redis, grant.ref, newAsk({ uses: 9 }));
    expect(await refused()).toMatchObject({ is: 'uses_exhausted', lastCall: undefined });
    await end({ costMicrousd: 10, lastCall: '{"status":500}' });
    expect(await refused()).toMatchObject({ is: 'uses_exhausted', lastCall: '{"status":500}' });
    const tooDear = admit(redis, grant.ref, newAsk({ hold: fixedHold(91) }));
    expect(await tooDear).toMatchObject({ is: 'cost_limit_too_low', lastCall: '{"status":500}' });
    const [own] = await readFigures(redis, grant.ref);
    expect(own?.lastCall).toBe('{"status":500}');
    await end({ costMicrousd: 10 });
    expect(await refused()).toMatchObject({ is: 'uses_exhausted', lastCall: undefined });
  });

  test('a call that was never sent does not change the recorded failure', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 3 });
    await settle(redis, grant.ref, newOutcome(await admitted(redis, grant), { lastCall: '{"status":500}' }));
    await settle(redis, grant.ref, newOutcome(await admitted(redis, grant), { epoch: UNHEARD, uses: 0 }));
    expect(await admit(redis, grant.ref, newAsk({ uses: 9 }))).toMatchObject({ lastCall: '{"status":500}' });
  });

  test('a release returns uses and money', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { maxUses: 3, costLimitMicrousd: 400 });
    const hold = await admitted(redis, grant, { uses: 3, holdMicrousd: 400 });
    await settle(redis, grant.ref, newOutcome(hold, { uses: 0, costMicrousd: 0 }));
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '0',
      settled: '0',
      held: '0',
    });
    await admitted(redis, grant, { uses: 3, holdMicrousd: 400 });
  });

  test('an unknown cost is marked as unknown and charged to no budget', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const hold = await admitted(redis, grant, { holdMicrousd: undefined });
    await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: undefined }));
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '1',
      settled: '0',
      held: '0',
    });
    const ledger = newLedger(partition);
    await drainAll(redis, ledger);
    expect(ledger.rows.get(hold)?.costMicrousd).toBeUndefined();
  });

  test('a hold that was never admitted is not settled', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    expect(await settle(redis, grant.ref, newOutcome(newHoldId(), { costMicrousd: 5 }))).toBeUndefined();
    expect(await figures(redis, partition, grant.ref.budgetIds[0])).toEqual({
      used: '0',
      settled: '0',
      held: '0',
    });
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
  });

  test('nothing of a call stays in Redis once it is settled, drained and trimmed', async () => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition);
    const before = (await keysOf(redis, partition)).sort();
    await settle(redis, grant.ref, newOutcome(await admitted(redis, grant)));
    await drainAll(redis, newLedger(partition));
    expect(await redis.xlen(keys.usage(partition))).toBe(0);
    expect((await keysOf(redis, partition)).filter((key) => key !== keys.usage(partition)).sort()).toEqual(
      before,
    );
  });
});
