import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admit, type Hold, loadGrant, type RedisClient } from '../src/index.ts';
import { loadedGrant, newAsk, newBudget, newGrant } from './grant.ts';
import { type Engine, engines, openPartition } from './redis.ts';

/** Microdollars per million tokens. */
const RATE = 600_000;
const price = (tokens: number, rate = RATE) =>
  Number((BigInt(tokens) * BigInt(rate) + 999_999n) / 1_000_000n);

const withHold = (asked: Hold) => ({ ...newAsk(), hold: asked });

describe.each(engines)('output bounds on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  const hold = (changes: Partial<Hold> = {}): Hold => ({
    fixedMicrousd: 100,
    ratePerMtok: RATE,
    askedTokens: 1_000,
    leastTokens: 256,
    ...changes,
  });
  const ask = async (limit: number, settled: number, asked: Hold) => {
    const partition = await openPartition(redis);
    const grant = await loadedGrant(redis, partition, { costLimitMicrousd: limit, settledMicrousd: settled });
    return { grant, admission: await admit(redis, grant.ref, withHold(asked)) };
  };

  test('a call that fits keeps the bound it asked for, and its worst cost is held', async () => {
    const { admission } = await ask(10_000, 0, hold());
    expect(admission).toMatchObject({
      is: 'admitted',
      tokens: 1_000,
      heldMicrousd: 700,
      microusdLeft: 9_300,
    });
  });

  test('settled money lowers the bound to what the remaining money pays', async () => {
    const { admission } = await ask(1_000, 500, hold());
    expect(admission).toMatchObject({ is: 'admitted', tokens: 666, heldMicrousd: 500, microusdLeft: 0 });
  });

  test('the bound is never lowered below the minimum; the refusal names the money needed', async () => {
    const { admission } = await ask(1_000, 800, hold());
    expect(admission).toMatchObject({
      is: 'cost_limit_too_low',
      settledMicrousd: 800,
      neededMicrousd: 100 + 154,
    });
  });

  test('open holds lower no bound: the call waits for them', async () => {
    const { grant } = await ask(1_000, 0, hold());
    const second = await admit(redis, grant.ref, withHold(hold()));
    expect(second).toMatchObject({ is: 'cost_held', heldMicrousd: 700, neededMicrousd: 700 });
  });

  test('a limit spent to the last microdollar is reached, not too low', async () => {
    const { admission } = await ask(1_000, 1_000, hold());
    expect(admission).toMatchObject({ is: 'cost_limit_reached' });
  });

  test('a call that costs nothing passes on a limit of 0', async () => {
    const { admission } = await ask(
      0,
      0,
      hold({ fixedMicrousd: 0, ratePerMtok: undefined, askedTokens: 0, leastTokens: 0 }),
    );
    expect(admission).toMatchObject({ is: 'admitted', heldMicrousd: 0 });
  });

  test('the budget with the least money left bounds the output, and both budgets hold the same', async () => {
    const partition = await openPartition(redis);
    const own = newBudget({ costLimitMicrousd: 10_000 });
    const budget = newBudget({ costLimitMicrousd: 1_000, settledMicrousd: 500 });
    const grant = newGrant(partition, own, budget);
    await loadGrant(redis, grant);
    const admission = await admit(redis, grant.ref, withHold(hold()));
    expect(admission).toMatchObject({ is: 'admitted', tokens: 666, heldMicrousd: 500, microusdLeft: 9_500 });
  });

  test('the bound is the largest that fits, to the token, for any price and any remaining money', async () => {
    const room = fc.integer({ min: 1, max: 1_000_000_000 });
    await fc.assert(
      fc.asyncProperty(
        room,
        fc.nat(1_000),
        fc.integer({ min: 1, max: 1_200_000_000 }),
        fc.integer({ min: 1, max: 200_000 }),
        async (limit, fixedMicrousd, ratePerMtok, askedTokens) => {
          const { admission } = await ask(limit, 0, {
            fixedMicrousd,
            ratePerMtok,
            askedTokens,
            leastTokens: 1,
          });
          const cost = (tokens: number) => fixedMicrousd + price(tokens, ratePerMtok);
          if (admission.is === 'cost_limit_too_low') {
            expect(cost(1)).toBeGreaterThan(limit);
            return;
          }
          if (admission.is !== 'admitted') throw new Error(admission.is);
          expect(admission.heldMicrousd).toBe(cost(admission.tokens));
          expect(admission.heldMicrousd).toBeLessThanOrEqual(limit);
          if (admission.tokens < askedTokens) expect(cost(admission.tokens + 1)).toBeGreaterThan(limit);
        },
      ),
      { numRuns: 100 },
    );
  });
});
