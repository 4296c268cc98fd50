import fc from 'fast-check';
import type { RedisClient } from '../src/index.ts';
import { loseAll } from './redis.ts';
import { comeToRest, type Step, take } from './take.ts';
import {
  drawn,
  expectAdmittedWithin,
  expectAgreement,
  expectBounded,
  expectExactBudgets,
  expectKeysLast,
  expectRightly,
  expectRows,
} from './verdict.ts';
import { newWorld, type World } from './world.ts';

const at = fc.nat(1_000);
const verb = <const D extends string>(...verbs: D[]) => ({ do: fc.constantFrom(...verbs) });
const price = { uses: fc.nat(2), hold: fc.oneof(fc.constant(0), fc.nat(300)) };
/** Most ends are moved to a time that no schedule reaches. */
const end = fc.constantFrom('before', 'after', 'before', 'after', 'now');
const admission = fc.record({
  ...{ ...verb('admit'), at, uses: fc.integer({ min: 1, max: 2 }), hold: fc.nat(500) },
  tokens: fc.oneof(fc.constant(0), fc.nat(400)),
});
const calm = [
  { weight: 6, arbitrary: admission },
  {
    weight: 4,
    arbitrary: fc.record({
      ...verb('settle'),
      at,
      share: fc.nat(100),
      tokenShare: fc.option(fc.nat(120)),
      kept: fc.boolean(),
      strays: fc.boolean(),
    }),
  },
  { weight: 5, arbitrary: fc.record({ ...verb('charge'), at, ...price }) },
  { weight: 3, arbitrary: fc.record({ ...verb('charge unheard'), at, ...price, arrives: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ ...verb('charge again', 'forestall', 'leave', 'end place'), at }) },
  { weight: 3, arbitrary: fc.record({ ...verb('refund'), at, uses: fc.nat(2), cost: fc.nat(300) }) },
  { weight: 3, arbitrary: fc.record({ ...verb('say again', 'renew', 'end lease', 'ask again'), at }) },
  {
    weight: 2,
    arbitrary: fc.record({ ...verb('drain'), most: fc.integer({ min: 1, max: 5 }), trims: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record(verb('sweep', 'restart', 'catch up')) },
  { weight: 2, arbitrary: fc.record(verb('roll over')) },
  { weight: 1, arbitrary: fc.record(verb('clock back')) },
  { weight: 1, arbitrary: fc.record({ ...verb('suspend'), at }) },
  { weight: 2, arbitrary: fc.record({ ...verb('apply suspension'), at, isLate: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ ...verb('issue', 'create budget', 'delete budget'), at }) },
  { weight: 2, arbitrary: fc.record({ ...verb('move end'), at, end }) },
  { weight: 1, arbitrary: fc.record({ ...verb('apply limits alone', 'apply end alone'), at }) },
  { weight: 1, arbitrary: fc.record({ ...verb('load', 'revoke'), at }) },
  {
    weight: 4,
    arbitrary: fc.record({
      ...verb('change', 'load overtaken'),
      at,
      maxUses: fc.option(fc.nat(12)),
      cost: fc.option(fc.nat(1_500)),
      tokens: fc.option(fc.nat(1_200)),
    }),
  },
  { weight: 4, arbitrary: fc.record({ ...verb('apply', 'read', 'load late'), at }) },
  { weight: 2, arbitrary: fc.record({ ...verb('apply late'), at, revision: fc.nat(8) }) },
];
/** Steps to take more often than others, so that few schedules find a fault. */
export const often = {
  admissions: { weight: 60, arbitrary: admission },
  ends: {
    weight: 60,
    arbitrary: fc.oneof(
      fc.record({ ...verb('move end'), at, end: fc.constantFrom('before' as const, 'after' as const) }),
      fc.record({ ...verb('apply'), at }),
      fc.record({ ...verb('apply late'), at, revision: fc.nat(8) }),
      admission,
    ),
  },
  ended: {
    weight: 60,
    arbitrary: fc.oneof(
      fc.record({ ...verb('move end'), at: fc.nat(3), end: fc.constant('now' as const) }),
      fc.record({ ...verb('apply'), at: fc.nat(3) }),
      admission,
    ),
  },
  suspensions: {
    weight: 60,
    arbitrary: fc.oneof(
      fc.record({ ...verb('suspend'), at }),
      fc.record({ ...verb('apply suspension'), at, isLate: fc.boolean() }),
      admission,
    ),
  },
  windows: { weight: 60, arbitrary: fc.oneof(fc.record(verb('roll over', 'clock back')), admission) },
};
/** Without losses only: a loss can bring the wider hold back. */
const narrowing = { weight: 3, arbitrary: fc.record({ ...verb('narrow'), at, share: fc.nat(100) }) };
const rough = { weight: 2, arbitrary: fc.record(verb('flush', 'snapshot', 'put back')) };
type Weighted = { readonly weight: number; readonly arbitrary: fc.Arbitrary<Step> };
const schedule = (...extra: Weighted[]): fc.Arbitrary<Step[]> =>
  fc.array(fc.oneof(...calm, ...extra), { maxLength: 70, size: 'max' });

/** The gateways that a schedule runs on, and a count of its steps. */
export type Ran = { readonly gateways: readonly RedisClient[]; steps: number };

/** Budgets are exact, each admission is within the limits in force, and each call is in the ledger once. */
export const withoutLoss = (ran: Ran, ...more: Weighted[]) =>
  fc.asyncProperty(schedule(narrowing, ...more), async (planned) => {
    const world = await newWorld(ran.gateways);
    for (const [nth, step] of planned.entries()) {
      ran.steps++;
      const before = drawn(world);
      const answer = await take(world, step, nth);
      await expectAdmittedWithin(world, before);
      if ((step.do === 'admit' || step.do === 'charge') && answer) await expectRightly(world, step, answer);
      await expectExactBudgets(world, 'under way');
    }
    await comeToRest(world);
    await expectExactBudgets(world, 'at rest');
    expectRows(world);
    await expectKeysLast(world);
    await expectAgreement(world);
    await forget(world);
  });

/** No call is counted twice, and limits are passed by no more than the calls lost. */
export const withLosses = (ran: Ran) =>
  fc.asyncProperty(schedule(rough), async (planned) => {
    const world = await newWorld(ran.gateways);
    for (const [nth, step] of planned.entries()) {
      ran.steps++;
      await take(world, step, nth);
      expectBounded(world);
    }
    await comeToRest(world);
    expectBounded(world);
    await expectAgreement(world);
    await forget(world);
  });

/** Deletes the keys of a world, so that thousands of them do not slow the next ones. */
const forget = ({ gateways: [redis], partition }: World) => (redis ? loseAll(redis, partition) : undefined);
