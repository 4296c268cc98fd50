import { expect } from 'vitest';
import { type Admission, keys, type RedisClient } from '../src/index.ts';
import { figures } from './grant.ts';
import type { Call, Step, World } from './world.ts';

/**
 * Limits hold, and each pot says what the calls made on it come to. Under way, a settle tried again in a later
 * epoch may count once more until it is drained: never less than the truth, and never for good.
 */
export async function expectExactPots(world: World, when: 'under way' | 'at rest'): Promise<void> {
  const believed = await believedPots(world);
  for (const pot of potsOf(world)) {
    const least = sums(world, pot.id, 'once');
    const most = when === 'at rest' ? least : sums(world, pot.id, 'repeats too');
    expect(least.used).toBeLessThanOrEqual(pot.maxUses ?? least.used);
    expect(least.settled + least.held).toBeLessThanOrEqual(
      pot.costLimitMicrousd ?? least.settled + least.held,
    );
    const now = believed.get(pot.id);
    if (!now) continue;
    expect(now.held).toBe(String(least.held));
    expectWithin(Number(now.used), least.used, most.used);
    expectWithin(Number(now.settled), least.settled, most.settled);
  }
}

/** A call is refused only with a true reason; that it was admitted rightly the pots' sums show. */
export function expectRightly(world: World, ask: Extract<Step, { do: 'admit' }>, answer: Admission): void {
  const grant = world.grants[ask.at % world.grants.length] as World['grants'][number];
  const revoked = world.revoked.has(grant.ref.id);
  if (answer.is === 'admitted' || answer.is === 'revoked') {
    expect(answer.is).toBe(revoked ? 'revoked' : 'admitted');
    return;
  }
  const full = grant.pots.some((pot) => {
    const { used, settled, held } = sums(world, pot.id, 'repeats too');
    const noUses = pot.maxUses !== null && used + ask.uses > pot.maxUses;
    return noUses || (pot.costLimitMicrousd !== null && settled + held + ask.hold > pot.costLimitMicrousd);
  });
  expect({ full, is: answer.is }).toEqual({ full: true, is: expect.stringMatching(/^(uses|cost)_/) });
}

/** The ledger has each call as its gateway or its lease ended it, and passes limits by lost calls at most. */
export function expectBounded(world: World): void {
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
export async function expectAgreement(world: World): Promise<void> {
  for (const [id, now] of await believedPots(world)) {
    const { used, settled } = world.ledger.pots.get(id) ?? { used: 0, settled: 0 };
    expect(now).toEqual({ used: `${used}`, settled: `${settled}`, held: '0' });
  }
}

/** What a pot must say by the calls made on it. */
function sums(world: World, potId: string, counting: 'once' | 'repeats too') {
  const sum = { used: 0, settled: 0, held: 0 };
  for (const call of world.calls.filter((made) => drawsOn(made, potId))) {
    const end = ended(call);
    const repeats = counting === 'once' ? 0 : call.repeats;
    sum.used += (end?.uses ?? call.uses) + repeats * (call.said?.uses ?? 0);
    sum.settled += (end?.cost ?? 0) + repeats * (call.said?.cost ?? 0);
    sum.held += end ? 0 : call.hold;
  }
  return sum;
}

function ended(call: Call): { uses: number; cost: number } | undefined {
  if (call.is === 'full') return { uses: call.uses, cost: call.hold };
  return call.is === 'said' ? call.said : undefined;
}

function expectWithin(figure: number, least: number, most: number): void {
  expect(figure).toBeGreaterThanOrEqual(least);
  expect(figure).toBeLessThanOrEqual(most);
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
