import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { often, type Ran, withLosses, withoutLoss } from './model.ts';
import { type Engine, engines, serveFaulty } from './redis.ts';

/** `MODEL_RUNS` makes so many schedules in each test, however long that takes, and says their steps, seed and time. */
const LONG_RUNS = Number(process.env.MODEL_RUNS ?? 0);
/** `MODEL_SEED` makes the same schedules again. */
const SEED = process.env.MODEL_SEED ? Number(process.env.MODEL_SEED) : undefined;
/** `MODEL_MINUTES` ends each test of a long run earlier. */
const MINUTES = Number(process.env.MODEL_MINUTES ?? 0);
const RUNS = LONG_RUNS || (process.env.TEST_ALL ? 100 : 15);
/** Shrinking a counterexample takes many runs. */
const TIMEOUT_MS = LONG_RUNS > 0 ? 86_400_000 : 120_000;

describe.each(engines)('any sequence of events on %s', (name, start) => {
  let engine: Engine;
  let ran: Ran;
  beforeAll(async () => {
    engine = await start();
    ran = { gateways: [await engine.connect(), await engine.connect()], steps: 0 };
  });
  afterAll(() => engine.close());

  const holds = async (which: string, property: ReturnType<typeof withoutLoss>) => {
    const seed = SEED ?? Date.now() | 0;
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
    'without a loss: budgets are exact, each admission is within the current limits, each call is in the ledger once',
    () => holds('without a loss', withoutLoss(ran)),
    TIMEOUT_MS,
  );

  test(
    'with losses: no call is counted twice, and limits are exceeded by no more than the lost calls',
    () => holds('with losses', withLosses(ran)),
    TIMEOUT_MS,
  );
});

describe('any sequence of events', () => {
  test.each([
    ['tokens that others hold', / - budget\.tokens_held then/, ' then', often.admissions],
    [
      'money that others hold',
      /budget\.settled - budget\.held - amount/,
      'budget.settled - amount',
      often.admissions,
    ],
    [
      'tokens that a call has used',
      /if tokens > 0 then redis\.call\('HINCRBY'/,
      "if false then redis.call('HINCRBY'",
      often.admissions,
    ],
    ['the windows that a call began in', /ARGV\[\d+\] ~= hold_budgets then/, 'false then', often.windows],
    ['that a window is over', /not is_within\(budget\.window, now\(\)\)/, 'false', often.windows],
    ['that a window has not begun', /now >= tonumber\(starts\) and/, '', often.windows],
    ['that an account is suspended', /'suspended'\) == '1'/, "'suspended') == '2'", often.suspensions],
    [
      'that an account was changed again',
      /if known > tonumber\(ARGV\[\d+\]\) then return 0 end/,
      '',
      often.suspensions,
    ],
    ['that an end has passed', /if ends and now\(\) >= tonumber\(ends\)/, 'if false', often.ended],
    [
      'that an end was moved again',
      /'HGET', KEYS\[1\], 'revision'\)\s+if \(tonumber\(known or ''\) or 0\) > /,
      "'HGET', KEYS[1], 'none')\nif (tonumber(known or '') or 0) > ",
      often.ends,
    ],
    [
      'that a change came first',
      /if \(tonumber\(known or ''\) or 0\) > /,
      "if (tonumber(known or '') or 0) < ",
      often.ends,
    ],
  ])(
    'finds scripts that forget %s',
    async (forgotten, right, wrong, more) => {
      const { engine, planted } = await serveFaulty(right, wrong);
      const ran = { gateways: [await engine.connect(), await engine.connect()], steps: 0 };
      const found = await fc.check(withoutLoss(ran, more), { numRuns: 200, seed: 2, endOnFailure: true });
      if (LONG_RUNS > 0) console.info(`without ${forgotten}: found after ${ran.steps} steps`);
      expect({ planted: planted(), failed: found.failed }).toEqual({ planted: true, failed: true });
      await engine.close();
    },
    120_000,
  );
});
