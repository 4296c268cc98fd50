import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadGrant, type RedisClient, settle } from '../src/index.ts';
import { admitted, newBudget, newGrant, newOutcome } from './grant.ts';
import { type Engine, engines, openPartition } from './redis.ts';

const NONE = { maxUses: null, costLimitMicrousd: null };
const MUCH = { maxUses: 10, costLimitMicrousd: 1_000 };
const LITTLE = { maxUses: 3, costLimitMicrousd: 500 };

describe.each(engines)('the uses and the money left after a settle, on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  const windowOf = (limits: object) =>
    newBudget({
      endsWithGrant: false,
      window: { startsMs: Date.now() - 1_000, endsMs: Date.now() + 3_600_000 },
      ...limits,
    });

  test.each([
    ['no limit', NONE, [], [undefined, undefined]],
    ['a hidden budget alone', NONE, [MUCH], [undefined, undefined]],
    ['a visible budget alone', NONE, [{ ...MUCH, visible: true }], [9, 600]],
    ['its own limit', MUCH, [], [9, 600]],
    ['its own limit and a visible budget without one', MUCH, [{ ...NONE, visible: true }], [9, 600]],
    ['its own limit and a hidden budget that has less', MUCH, [LITTLE], [9, 600]],
    ['its own limit and a visible budget that has less', MUCH, [{ ...LITTLE, visible: true }], [2, 100]],
  ])('are those of %s', async (_of, own, shared, [uses, microusd]) => {
    const partition = await openPartition(redis);
    const grant = newGrant(partition, newBudget(own), ...shared.map(windowOf));
    await loadGrant(redis, { ...grant, doc: '{}' });
    const hold = await admitted(redis, grant, { holdMicrousd: 500 });
    const left = await settle(redis, grant.ref, newOutcome(hold, { costMicrousd: 400 }));
    expect([left?.uses, left?.microusd]).toEqual([uses, microusd]);
  });

  test('are 0 if a limit was lowered below what is used', async () => {
    const partition = await openPartition(redis);
    const window = windowOf({ ...MUCH, visible: true });
    const grant = newGrant(partition, newBudget({ maxUses: 100, costLimitMicrousd: 9_000 }), window);
    await loadGrant(redis, { ...grant, doc: '{}' });
    const hold = await admitted(redis, grant, { uses: 2, holdMicrousd: 500 });
    const lowered = { ...window, revision: window.revision + 1, maxUses: 1, costLimitMicrousd: 100 };
    await loadGrant(redis, { ...grant, budgets: [grant.budgets[0] ?? window, lowered], doc: '{}' });
    const left = await settle(redis, grant.ref, newOutcome(hold, { uses: 2, costMicrousd: 400 }));
    expect([left?.uses, left?.microusd]).toEqual([0, 0]);
  });
});
