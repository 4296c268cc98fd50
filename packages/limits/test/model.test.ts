import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RedisClient } from '../src/index.ts';
import { type Engine, engines } from './redis.ts';
import { expectAgreement, expectBounded, expectExactPots, expectRightly } from './verdict.ts';
import { comeToRest, newWorld, type Step, take } from './world.ts';

const at = fc.nat(1_000);
const verb = <const D extends string>(...verbs: D[]) => ({ do: fc.constantFrom(...verbs) });
const calm = [
  {
    weight: 6,
    arbitrary: fc.record({ ...verb('admit'), at, uses: fc.integer({ min: 1, max: 2 }), hold: fc.nat(500) }),
  },
  { weight: 4, arbitrary: fc.record({ ...verb('settle'), at, share: fc.nat(100), kept: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ ...verb('say again', 'renew', 'end lease', 'ask again'), at }) },
  {
    weight: 2,
    arbitrary: fc.record({ ...verb('drain'), most: fc.integer({ min: 1, max: 5 }), trims: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record(verb('sweep', 'restart', 'catch up')) },
  { weight: 1, arbitrary: fc.record({ ...verb('open', 'revoke'), at }) },
];
const rough = { weight: 2, arbitrary: fc.record(verb('flush', 'snapshot', 'put back')) };
const schedule = (...extra: (typeof rough)[]): fc.Arbitrary<Step[]> =>
  fc.array(fc.oneof(...calm, ...extra), { maxLength: 50, size: 'max' });
const RUNS = 50;
/** Shrinking a counterexample takes many runs. */
const TIMEOUT_MS = 120_000;

describe.each(engines)('any schedule on %s', (_name, start) => {
  let engine: Engine;
  let gateways: RedisClient[];
  beforeAll(async () => {
    engine = await start();
    gateways = [await engine.connect(), await engine.connect()];
  });
  afterAll(() => engine.close());

  test(
    'without a loss: pots are exact and within their limits after each step, each call is in the ledger once',
    () =>
      fc.assert(
        fc.asyncProperty(schedule(), async (steps) => {
          const world = await newWorld(gateways);
          for (const [nth, step] of steps.entries()) {
            const answer = await take(world, step, nth);
            if (step.do === 'admit' && answer) expectRightly(world, step, answer);
            await expectExactPots(world, 'under way');
          }
          await comeToRest(world);
          await expectExactPots(world, 'at rest');
          expect([...world.ledger.rows.keys()].sort()).toEqual(world.calls.map((call) => call.holdId).sort());
          await expectAgreement(world);
        }),
        { numRuns: RUNS },
      ),
    TIMEOUT_MS,
  );

  test(
    'with losses: no call is counted twice, and limits are passed by no more than the calls lost',
    () =>
      fc.assert(
        fc.asyncProperty(schedule(rough), async (steps) => {
          const world = await newWorld(gateways);
          for (const [nth, step] of steps.entries()) {
            await take(world, step, nth);
            expectBounded(world);
          }
          await comeToRest(world);
          expectBounded(world);
          await expectAgreement(world);
        }),
        { numRuns: RUNS },
      ),
    TIMEOUT_MS,
  );
});
