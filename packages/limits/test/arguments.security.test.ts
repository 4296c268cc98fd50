import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { admit, type RedisClient, settle } from '../src/index.ts';
import { figures, loadedGrant, newAsk, newOutcome } from './grant.ts';
import { drainAll, newLedger } from './ledger.ts';
import { type Engine, engines, openPartition } from './redis.ts';

/** `pnpm test` and `pnpm test:all`. fast-check prints the seed and the path of a failure. */
const RUNS = process.env.TEST_ALL ? 2_000 : 50;

/** Texts from which fuzzing starts: what Redis, Lua and their protocol treat in a special way. Keep what fuzzing finds here. */
const TEXTS = [
  '',
  '0',
  '-1',
  '1e400',
  'nil',
  '*1\r\n$4\r\nPING\r\n',
  '\0',
  '\\u0000',
  '{}',
  ',',
  ']]',
  '%s%d',
  'é😀\ud800',
];
const text = fc.oneof(
  fc.constantFrom(...TEXTS),
  fc.tuple(fc.constantFrom(...TEXTS), fc.string({ unit: 'binary' })).map((parts) => parts.join('')),
);
const LARGEST = Number.MAX_SAFE_INTEGER;
const amount = fc.oneof(
  fc.constantFrom(0, 1, 2 ** 31, 2 ** 32, 1e15, LARGEST - 1, LARGEST),
  fc.nat(10_000),
  fc.maxSafeNat(),
);
const call = fc.record({
  uses: fc.constantFrom(1, 1, 2, 100),
  hold: amount,
  cost: amount,
  keeps: fc.boolean(),
  text,
});
const limits = fc.record({
  maxUses: fc.option(fc.integer({ min: 1, max: LARGEST })),
  cost: fc.option(amount),
});

describe.each(engines)('arguments of scripts on %s', (_name, start) => {
  let engine: Engine;
  let redis: RedisClient;
  beforeAll(async () => {
    engine = await start();
    redis = await engine.connect();
  });
  afterAll(() => engine.close());

  test('no argument bypasses a limit, and every text reaches the ledger unchanged', async () => {
    const partition = await openPartition(redis);
    const ledger = newLedger(partition);
    const property = fc.asyncProperty(limits, fc.array(call, { maxLength: 5 }), async (most, calls) => {
      const limit = { maxUses: most.maxUses, costLimitMicrousd: most.cost };
      const { ref } = await loadedGrant(redis, partition, limit);
      const records = new Map<string, string>();
      let lastCall: string | undefined;
      for (const { uses, hold, cost, keeps, text } of calls) {
        const ask = newAsk({ uses, holdMicrousd: hold, record: JSON.stringify({ at: text }) });
        const answer = await admit(redis, ref, ask);
        if (answer.is !== 'admitted') {
          if ('lastCall' in answer) expect(answer.lastCall).toBe(lastCall);
          continue;
        }
        const within = async () => {
          const { used, settled, held } = (await figures(redis, partition, ref.budgetIds[0])) ?? {};
          if (most.maxUses !== null) expect(Number(used)).toBeLessThanOrEqual(most.maxUses);
          if (most.cost !== null)
            expect(BigInt(settled ?? '') + BigInt(held ?? '')).toBeLessThanOrEqual(BigInt(most.cost));
        };
        await within();
        const record = JSON.stringify({ ended: text });
        lastCall = JSON.stringify({ why: text });
        // A cost above the hold is an overrun, which is charged in full.
        const outcome = { uses: keeps ? uses : 0, costMicrousd: Math.min(cost, hold), record, lastCall };
        await settle(redis, ref, newOutcome(ask.holdId, outcome));
        records.set(ask.holdId, record);
        await within();
      }
      await drainAll(redis, ledger);
      for (const [holdId, record] of records) expect(ledger.rows.get(holdId)?.record).toBe(record);
    });
    await fc.assert(property, { numRuns: RUNS });
  });
});
