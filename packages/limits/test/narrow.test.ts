import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admit, narrow, type RedisClient, settle } from '../src/index.ts';
import { admitted, figures, loadedGrant, newAsk, newOutcome } from './grant.ts';
import { type Engine, engines, openPartition } from './redis.ts';

describe.each(engines)('narrow on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  const loadedWith = async (holdMicrousd: number) => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: 1_000 });
    const holdId = await admitted(redis, grant, { holdMicrousd });
    const held = async () => (await figures(redis, partition, grant.ref.budgetIds[0]))?.held;
    return { grant, holdId, held };
  };

  test('lowers the hold, and frees the difference for other calls', async () => {
    const { grant, holdId, held } = await loadedWith(900);
    expect((await admit(redis, grant.ref, newAsk({ holdMicrousd: 400 }))).is).toBe('cost_held');
    expect(await narrow(redis, grant.ref, holdId, 500)).toBe(400);
    expect(await held()).toBe('500');
    expect((await admit(redis, grant.ref, newAsk({ holdMicrousd: 400 }))).is).toBe('admitted');
  });

  test('never raises a hold, and a repeat changes nothing', async () => {
    const { grant, holdId, held } = await loadedWith(500);
    expect(await narrow(redis, grant.ref, holdId, 600)).toBe(0);
    expect(await narrow(redis, grant.ref, holdId, 200)).toBe(300);
    expect(await narrow(redis, grant.ref, holdId, 200)).toBe(0);
    expect(await held()).toBe('200');
  });

  test('does nothing to a call that was settled, or was never admitted', async () => {
    const { grant, holdId, held } = await loadedWith(500);
    await settle(redis, grant.ref, newOutcome(holdId, { costMicrousd: 100 }));
    expect(await narrow(redis, grant.ref, holdId, 50)).toBe(0);
    expect(await narrow(redis, grant.ref, 'f'.repeat(32), 50)).toBe(0);
    expect(await held()).toBe('0');
  });

  test('leaves the settle to free exactly what is still held', async () => {
    const { grant, holdId, held } = await loadedWith(500);
    await narrow(redis, grant.ref, holdId, 200);
    await settle(redis, grant.ref, newOutcome(holdId, { costMicrousd: 150 }));
    expect(await held()).toBe('0');
  });
});
