import { expect } from 'vitest';
import { type Admission, keys, type RedisClient } from '../src/index.ts';
import { KEYS_KEPT_MS } from '../src/keys.ts';
import { figures, tokenFigures } from './grant.ts';
import type { Step } from './take.ts';
import { hasEnded, highest, inForce, isSuspended } from './take-change.ts';
import { type Call, type Charged, endsOf, isAskedAgain, latest, type World } from './world.ts';

/**
 * Limits hold, and each budget has the sums of its calls. Under way, a settle tried again in a later
 * epoch may count once more until it is drained: never less than the truth, and never for good.
 */
export async function expectExactBudgets(world: World, when: 'under way' | 'at rest'): Promise<void> {
  const believed = await believedBudgets(world);
  for (const budget of budgetsOf(world)) {
    const least = sums(world, budget.id, 'once');
    const most = when === 'at rest' ? least : sums(world, budget.id, 'repeats too');
    const ever = highest(world, budget.id);
    expect(least.used).toBeLessThanOrEqual(ever.maxUses ?? least.used);
    expect(least.settled + least.held).toBeLessThanOrEqual(
      ever.costLimitMicrousd ?? least.settled + least.held,
    );
    expect(least.tokens + least.tokensHeld).toBeLessThanOrEqual(
      ever.tokenLimit ?? least.tokens + least.tokensHeld,
    );
    const now = believed.get(budget.id);
    if (!now) continue;
    if (now.ofTokens) {
      expect(now.ofTokens.held).toBe(String(least.tokensHeld));
      expectWithin(Number(now.ofTokens.tokens), least.tokens, most.tokens);
    }
    expect(now.held).toBe(String(least.held));
    if (typeof budget.concurrentCalls === 'number') {
      const active = await activeIn(world, budget.id);
      expect(active).toBe(placesTaken(world, budget.id));
      expect(active).toBeLessThanOrEqual(budget.concurrentCalls);
    }
    expectWithin(Number(now.used), least.used, most.used);
    expectWithin(Number(now.settled), least.settled, most.settled);
  }
}

/** The uses, and the money and tokens settled or held, of each budget by its id. */
export type Drawn = ReadonlyMap<
  string,
  { readonly used: number; readonly money: number; readonly tokens: number }
>;

export const drawn = (world: World): Drawn =>
  new Map(
    [...budgetsOf(world)].map(({ id }) => {
      const { used, settled, held, tokens, tokensHeld } = sums(world, id, 'once');
      return [id, { used, money: settled + held, tokens: tokens + tokensHeld }];
    }),
  );

/**
 * Only an admission raises what was drawn, and after it all of it is within the limits in force. Outside of the present window
 * nothing rises.
 */
export async function expectAdmittedWithin(world: World, before: Drawn): Promise<void> {
  const after = await Promise.all(
    [...drawn(world)].map(async ([id, now]) => [id, now, await inForce(world, id)] as const),
  );
  for (const [id, now, limits] of after) {
    const { used = 0, money = 0, tokens = 0 } = before.get(id) ?? {};
    const isOutside = world.windows.some((window, at) => at !== world.present && window.id === id);
    if (isOutside)
      expect({ id, rose: now.used > used || now.money > money || now.tokens > tokens }).toEqual({
        id,
        rose: false,
      });
    if (now.used > used) expect(now.used).toBeLessThanOrEqual(limits?.maxUses ?? now.used);
    if (now.money > money) expect(now.money).toBeLessThanOrEqual(limits?.costLimitMicrousd ?? now.money);
    if (now.tokens > tokens) expect(now.tokens).toBeLessThanOrEqual(limits?.tokenLimit ?? now.tokens);
  }
}

/** A call is refused only with a true reason; that it was admitted rightly the budgets' sums show. */
export async function expectRightly(
  world: World,
  ask: Extract<Step, { do: 'admit' | 'charge' }>,
  answer: Admission,
): Promise<void> {
  const grant = world.grants[ask.at % world.grants.length] as World['grants'][number];
  const revoked = world.revoked.has(grant.ref.id);
  const [suspended, ended] = await Promise.all([isSuspended(world), hasEnded(world, grant)]);
  if (suspended || answer.is === 'suspended') {
    expect({ suspended, is: answer.is }).toEqual({ suspended: true, is: 'suspended' });
    return;
  }
  // A gateway that must read Postgres learns there that the grant has ended, perhaps before Redis does.
  if (answer.is === 'expired' || isAskedAgain(answer)) {
    const now = answer.is === 'expired' ? ended : latest(world, grant).expiresAtMs <= Date.now();
    expect({ is: answer.is, ended: now }).toEqual({ is: answer.is, ended: true });
    return;
  }
  if (answer.is === 'admitted') expect(ended).toBe(false);
  if (answer.is === 'admitted' || answer.is === 'revoked') {
    expect(answer.is).toBe(revoked ? 'revoked' : 'admitted');
    return;
  }
  const { budgets } = latest(world, grant);
  const known = await Promise.all(budgets.map(async (each) => (await inForce(world, each.id)) ?? each));
  const full = known.some((budget) => {
    const { used, settled, held, tokens, tokensHeld } = sums(world, budget.id, 'repeats too');
    const asked = 'tokens' in ask ? ask.tokens : 0;
    const noTokens =
      (budget.tokenLimit ?? null) !== null && tokens + tokensHeld + asked > (budget.tokenLimit ?? 0);
    const noUses = budget.maxUses !== null && used + ask.uses > budget.maxUses;
    const { concurrentCalls = null } = budget;
    const noPlace = concurrentCalls !== null && placesTaken(world, budget.id) + 1 > concurrentCalls;
    return (
      noUses ||
      noPlace ||
      noTokens ||
      (budget.costLimitMicrousd !== null && settled + held + ask.hold > budget.costLimitMicrousd)
    );
  });
  expect({ full, is: answer.is }).toEqual({
    full: true,
    is: expect.stringMatching(/^(uses|cost|concurrency|tokens?)_/),
  });
}

/** The ledger has each call as its gateway or its lease ended it, and passes limits by lost calls at most. */
export function expectBounded(world: World): void {
  const made = new Map(world.calls.map((call) => [call.holdId, call]));
  const charges = new Map(world.charges.map((each) => [each.record, each]));
  for (const { holdId, uses, costMicrousd, outcome, record } of world.ledger.rows.values()) {
    const charge = charges.get(record);
    const call = made.get(holdId);
    const ends = outcome === 'expired' ? { uses: call?.uses, cost: call?.hold } : call?.said;
    expect({ uses, cost: costMicrousd }).toEqual(
      charge ? charged(charge, outcome) : ends && { uses: ends.uses, cost: ends.cost },
    );
  }
  for (const budget of budgetsOf(world)) {
    const lost = [...world.lost].filter((call) => drawsOn(call, budget.id));
    const { used, settled, tokens } = world.ledger.budgets.get(budget.id) ?? {
      used: 0,
      settled: 0,
      tokens: 0,
    };
    const ever = highest(world, budget.id);
    expect(used - total(lost, usesOf)).toBeLessThanOrEqual(ever.maxUses ?? used);
    expect(settled - total(lost, mostOf)).toBeLessThanOrEqual(ever.costLimitMicrousd ?? settled);
    if (budget.window) expect(tokens - total(lost, tokensOf)).toBeLessThanOrEqual(ever.tokenLimit ?? tokens);
  }
}

/** The ledger has these and no others: each call, each charge that counted, and each refund. */
export function expectRows(world: World): void {
  const charges = world.charges.filter(({ counted }) => counted);
  const names = charges.flatMap(({ record, back }) => [
    `settled ${record}`,
    back ? `refunded ${record}` : [],
  ]);
  const records = new Set(charges.map(({ record }) => record));
  const rows = [...world.ledger.rows.values()];
  const named = rows.map(({ holdId, outcome, record }) =>
    records.has(record) ? `${outcome} ${record}` : holdId,
  );
  expect(named.sort()).toEqual([...names.flat(), ...world.calls.map(({ holdId }) => holdId)].sort());
}

/** At rest Redis and the ledger say the same of every budget. */
export async function expectAgreement(world: World): Promise<void> {
  for (const [id, now] of await believedBudgets(world)) {
    const { used, settled, tokens } = world.ledger.budgets.get(id) ?? { used: 0, settled: 0, tokens: 0 };
    const { ofTokens, ...others } = now;
    expect(others).toEqual({ used: `${used}`, settled: `${settled}`, held: '0' });
    if (ofTokens) expect(ofTokens).toEqual({ tokens: `${tokens}`, held: '0' });
    expect(await activeIn(world, id)).toBe(0);
  }
}

/** The keys of a grant last at least as long as its tokens, and those of its own budget too: so they outlive every hold. */
export async function expectKeysLast(world: World): Promise<void> {
  const redis = world.gateways[0] as RedisClient;
  for (const grant of world.grants) {
    const [own = ''] = grant.ref.budgetIds;
    const { answered = 0, revisions = [] } = world.histories.get(own) ?? {};
    const known = endsOf(world, grant).filter((_, at) => (revisions[at]?.revision ?? 0) <= answered);
    const least = Math.max(grant.expiresAtMs, ...known.map((end) => end ?? 0)) + KEYS_KEPT_MS;
    for (const key of [keys.grant(world.partition, grant.ref.id), keys.budget(world.partition, own)]) {
      const ends = await redis.pexpiretime(key);
      if (ends !== NO_KEY) expect({ key, ends: Math.max(ends, least) }).toEqual({ key, ends });
    }
  }
}
const NO_KEY = -2;

/** The sums that a budget must have after the calls made on it. */
function sums(world: World, budgetId: string, counting: 'once' | 'repeats too') {
  const sum = { used: 0, settled: 0, held: 0, tokens: 0, tokensHeld: 0 };
  for (const call of world.calls.filter((made) => drawsOn(made, budgetId))) {
    const end = ended(call);
    const repeats = counting === 'once' ? 0 : call.repeats;
    sum.used += (end?.uses ?? call.uses) + repeats * (call.said?.uses ?? 0);
    sum.settled += (end?.cost ?? 0) + repeats * (call.said?.cost ?? 0);
    sum.held += end ? 0 : call.hold;
    sum.tokens += (end?.tokens ?? 0) + repeats * (call.said?.usedTokens ?? 0);
    sum.tokensHeld += end ? 0 : call.tokens;
  }
  for (const charge of world.charges.filter((made) => made.counted && drawsOn(made, budgetId))) {
    sum.used += charge.uses - (charge.back?.uses ?? 0);
    sum.settled += charge.cost - (charge.back?.cost ?? 0);
  }
  return sum;
}

/** Calls under way by what happened: of calls that have not ended, and of charges that have not left. */
function placesTaken(world: World, budgetId: string): number {
  const isOwn = ({ grant }: Call | Charged) => grant.ref.budgetIds[0] === budgetId;
  const running = world.calls.filter((call) => isOwn(call) && !ended(call)).length;
  return running + world.charges.filter(isOwn).reduce((sum, { places }) => sum + places, 0);
}

async function activeIn(world: World, budgetId: string): Promise<number> {
  const [active] = await (world.gateways[0] as RedisClient).hmget(
    keys.budget(world.partition, budgetId),
    'active',
  );
  return Number(active ?? 0);
}

/** The ledger row that a charge or its refund must have. */
function charged({ uses, cost, back }: Charged, outcome: string): { uses: number; cost: number } | undefined {
  if (outcome === 'settled') return { uses, cost };
  return back && { uses: 0 - back.uses, cost: 0 - back.cost };
}

function ended(call: Call): { uses: number; cost: number; tokens: number } | undefined {
  if (call.is === 'full') return { uses: call.uses, cost: call.hold, tokens: call.tokens };
  return call.is === 'said' ? call.said : undefined;
}

function expectWithin(figure: number, least: number, most: number): void {
  expect(figure).toBeGreaterThanOrEqual(least);
  expect(figure).toBeLessThanOrEqual(most);
}

/** The figures of the budgets that Redis has in the present epoch. */
async function believedBudgets(world: World) {
  const redis = world.gateways[0] as RedisClient;
  const reads = [...budgetsOf(world)].map(async ({ id }) => {
    const [epoch, own, sums, ofTokens] = await Promise.all([
      redis.hget(keys.partition(world.partition), 'epoch'),
      redis.hget(keys.budget(world.partition, id), 'epoch'),
      figures(redis, world.partition, id),
      tokenFigures(redis, world.partition, id),
    ]);
    if (epoch === null || epoch !== own) return [];
    return [[id, { ...sums, ofTokens }]] as const;
  });
  return new Map((await Promise.all(reads)).flat());
}

const drawsOn = ({ grant }: Call | Charged, budgetId: string) => grant.ref.budgetIds.includes(budgetId);
const budgetsOf = (world: World) =>
  new Map(
    [...world.grants.flatMap(({ budgets }) => budgets), ...world.windows].map((budget) => [
      budget.id,
      budget,
    ]),
  ).values();
const usesOf = ({ uses }: Call | Charged) => uses;
const mostOf = (made: Call | Charged) => ('hold' in made ? made.hold : made.cost);
/** A lost hold does not bound what its gateway reports. */
const tokensOf = (made: Call | Charged) =>
  'hold' in made ? Math.max(made.tokens, made.said?.usedTokens ?? 0) : 0;
const total = (made: readonly (Call | Charged)[], figure: (each: Call | Charged) => number) =>
  made.reduce((sum, each) => sum + figure(each), 0);
