import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Ran, withLosses, withoutLoss } from './model.ts';
import { type Engine, engines, serveFaulty } from './redis.ts';

/** `MODEL_RUNS` makes so many schedules in each test, however long that takes, and says their steps, seed and time. */
const LONG_RUNS = Number(process.env.MODEL_RUNS ?? 0);
/** `MODEL_MINUTES` ends each test of a long run earlier. */
const MINUTES = Number(process.env.MODEL_MINUTES ?? 0);
const RUNS = LONG_RUNS || (process.env.TEST_ALL ? 100 : 25);
/** Shrinking a counterexample takes many runs. */
const TIMEOUT_MS = LONG_RUNS > 0 ? 86_400_000 : 120_000;

describe.each(engines)('any schedule on %s', (name, start) => {
  let engine: Engine;
  let ran: Ran;
  beforeAll(async () => {
    engine = await start();
    ran = { gateways: [await engine.connect(), await engine.connect()], steps: 0 };
  });
  afterAll(() => engine.close());

  const holds = async (which: string, property: ReturnType<typeof withoutLoss>) => {
    const seed = Date.now() | 0;
    const [before, began] = [ran.steps, performance.now()];
    await fc.assert(property, {
      numRuns: RUNS,
      seed,
      ...(MINUTES > 0 && { interruptAfterTimeLimit: MINUTES * 60_000 }),
    });
    const seconds = Math.round((performance.now() - began) / 1000);
    if (LONG_RUNS > 0)
      console.info(`${name}, ${which}: ${ran.steps - before} steps, seed ${seed}, ${seconds} s`);
  };

  test(
    'without a loss: budgets are exact, each admission is within the limits in force, each call is in the ledger once',
    () => holds('without a loss', withoutLoss(ran)),
    TIMEOUT_MS,
  );

  test(
    'with losses: no call is counted twice, and limits are passed by no more than the calls lost',
    () => holds('with losses', withLosses(ran)),
    TIMEOUT_MS,
  );
});

describe('any schedule', () => {
  test.each([
    ['tokens that others hold', / - budget\.tokens_held then/, ' then'],
    ['money that others hold', /budget\.settled - budget\.held - amount/, 'budget.settled - amount'],
    [
      'tokens that a call has used',
      /if tokens > 0 then redis\.call\('HINCRBY'/,
      "if false then redis.call('HINCRBY'",
    ],
    ['the windows that a call began in', /ARGV\[\d+\] ~= hold_budgets then/, 'false then'],
    ['that a window is over', /if not is_within\(window, now\)/, 'if false'],
    [
      'that a change came first',
      /if \(tonumber\(known or ''\) or 0\) > /,
      "if (tonumber(known or '') or 0) < ",
    ],
  ])(
    'finds scripts that forget %s',
    async (_what, right, wrong) => {
      const { engine, planted } = await serveFaulty(right, wrong);
      const ran = { gateways: [await engine.connect(), await engine.connect()], steps: 0 };
      const found = await fc.check(withoutLoss(ran), { numRuns: 200, seed: 2, endOnFailure: true });
      expect({ planted: planted(), failed: found.failed }).toEqual({ planted: true, failed: true });
      await engine.close();
    },
    120_000,
  );
});
