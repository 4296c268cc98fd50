import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Admission, keys, type RedisClient } from '../src/index.ts';
import { figures } from './grant.ts';
import { type Engine, engines } from './redis.ts';
import { type Call, comeToRest, newWorld, type Step, take, type World } from './world.ts';

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
  { weight: 2, arbitrary: fc.record(verb('sweep', 'restart')) },
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
            await expectExactPots(world);
          }
          await comeToRest(world);
          await expectExactPots(world);
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

/** What a pot must say by the calls made on it. */
function sums(world: World, potId: string) {
  const sum = { used: 0, settled: 0, held: 0 };
  for (const call of world.calls.filter((made) => drawsOn(made, potId))) {
    const end = ended(call);
    sum.used += end?.uses ?? call.uses;
    sum.settled += end?.cost ?? 0;
    sum.held += end ? 0 : call.hold;
  }
  return sum;
}

function ended(call: Call): { uses: number; cost: number } | undefined {
  if (call.is === 'full') return { uses: call.uses, cost: call.hold };
  return call.is === 'said' ? call.said : undefined;
}

/** A settle tried again in a later epoch may count once more until it is drained: never less, never for good. */
async function expectExactPots(world: World, atRest = false): Promise<void> {
  const believed = await believedPots(world);
  for (const pot of potsOf(world)) {
    const { used, settled, held } = sums(world, pot.id);
    expect(used).toBeLessThanOrEqual(pot.maxUses ?? used);
    expect(settled + held).toBeLessThanOrEqual(pot.costLimitMicrousd ?? settled + held);
    const now = believed.get(pot.id);
    if (!now) continue;
    const repeated = world.calls.filter((call) => !atRest && call.repeats > 0 && drawsOn(call, pot.id));
    const [usesMore, costMore] = [again(repeated, 'uses'), again(repeated, 'cost')];
    expect(now.held).toBe(String(held));
    expectWithin(Number(now.used), used, usesMore);
    expectWithin(Number(now.settled), settled, costMore);
  }
}

function expectWithin(figure: number, exact: number, more: number): void {
  expect(figure).toBeGreaterThanOrEqual(exact);
  expect(figure).toBeLessThanOrEqual(exact + more);
}

/** A call is refused only with a true reason; that it was admitted rightly the pots' sums show. */
function expectRightly(world: World, ask: Extract<Step, { do: 'admit' }>, answer: Admission): void {
  const grant = world.grants[ask.at % world.grants.length] as World['grants'][number];
  const revoked = world.revoked.has(grant.ref.id);
  if (answer.is === 'admitted') expect(revoked).toBe(false);
  else if (answer.is === 'revoked') expect(revoked).toBe(true);
  else {
    const full = grant.pots.some((pot) => {
      const { used, settled, held } = sums(world, pot.id);
      const usesOver = pot.maxUses !== null && used + ask.uses > pot.maxUses;
      return (
        usesOver || (pot.costLimitMicrousd !== null && settled + held + ask.hold > pot.costLimitMicrousd)
      );
    });
    expect({ full, is: answer.is }).toEqual({ full: true, is: expect.stringMatching(/^(uses|cost)_/) });
  }
}

/** The ledger has each call as its gateway or its lease ended it, and passes limits by lost calls at most. */
function expectBounded(world: World): void {
  const made = new Map(world.calls.map((call) => [call.holdId, call]));
  for (const [holdId, { uses, costMicrousd, outcome }] of world.ledger.rows) {
    const call = made.get(holdId);
    const ends = outcome === 'expired' ? { uses: call?.uses, cost: call?.hold } : call?.said;
    expect({ uses, cost: costMicrousd }).toEqual(ends);
  }
  for (const pot of potsOf(world)) {
    const lost = [...world.lost].filter((call) => drawsOn(call, pot.id));
    const { used, settled } = world.ledger.pots.get(pot.id) ?? { used: 0, settled: 0 };
    const [usesLost, costLost] = [total(lost, 'uses'), total(lost, 'hold')];
    expect(used - usesLost).toBeLessThanOrEqual(pot.maxUses ?? used);
    expect(settled - costLost).toBeLessThanOrEqual(pot.costLimitMicrousd ?? settled);
  }
}

/** At rest Redis and the ledger say the same of every pot. */
async function expectAgreement(world: World): Promise<void> {
  for (const [id, figures] of await believedPots(world)) {
    const { used, settled } = world.ledger.pots.get(id) ?? { used: 0, settled: 0 };
    expect(figures).toEqual({ used: `${used}`, settled: `${settled}`, held: '0' });
  }
}

/** The figures of the pots that Redis has in the present epoch. */
async function believedPots(world: World) {
  const redis = world.gateways[0] as RedisClient;
  const reads = [...potsOf(world)].map(async ({ id }) => {
    const [epoch, own] = await Promise.all([
      redis.hget(keys.partition(world.partition), 'epoch'),
      redis.hget(keys.pot(world.partition, id), 'epoch'),
    ]);
    return epoch !== null && epoch === own
      ? ([[id, await figures(redis, world.partition, id)]] as const)
      : [];
  });
  return new Map((await Promise.all(reads)).flat());
}

const drawsOn = (call: Call, potId: string) => call.grant.ref.potIds.includes(potId);
const potsOf = (world: World) =>
  new Map(world.grants.flatMap(({ pots }) => pots.map((pot) => [pot.id, pot]))).values();
const total = (calls: readonly Call[], what: 'uses' | 'hold') =>
  calls.reduce((sum, call) => sum + call[what], 0);
const again = (calls: readonly Call[], what: 'uses' | 'cost') =>
  calls.reduce((sum, { repeats, said }) => sum + repeats * (said?.[what] ?? 0), 0);
