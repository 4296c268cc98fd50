import {
  type Admission,
  charge,
  forestall,
  type GrantState,
  leave,
  type RedisClient,
  refund,
  renew,
} from '../src/index.ts';
import { newHoldId } from './grant.ts';
import { type Charged, isAskedAgain, knownTo, load, one, type World } from './world.ts';

/** One thing that happens to a call of known price. */
export type ChargeStep =
  | { readonly do: 'charge'; readonly at: number; readonly uses: number; readonly hold: number }
  | {
      readonly do: 'charge unheard';
      readonly at: number;
      readonly uses: number;
      readonly hold: number;
      readonly arrives: boolean;
    }
  | { readonly do: 'charge again' | 'forestall' | 'leave' | 'end place'; readonly at: number }
  | { readonly do: 'refund'; readonly at: number; readonly uses: number; readonly cost: number };

const DOES: ReadonlySet<string> = new Set([
  'charge',
  'charge unheard',
  'charge again',
  'forestall',
  'leave',
  'end place',
  'refund',
] satisfies ChargeStep['do'][]);

export const isChargeStep = (step: { readonly do: string }): step is ChargeStep => DOES.has(step.do);

/** Does one step. Returns the reply to a new charge, if its gateway got it. */
export async function takeCharge(
  world: World,
  redis: RedisClient,
  step: ChargeStep,
): Promise<Admission | undefined> {
  if (step.do === 'charge' || step.do === 'charge unheard') {
    const made = newCharged(knownTo(world, redis, one(world.grants, step.at)), step, step.do === 'charge');
    const sent = made.heard || (step.do === 'charge unheard' && step.arrives);
    const answer = sent ? await send(world, redis, made) : undefined;
    // A refused charge whose gateway got the answer is over.
    if (!made.heard || made.counted || made.places > 0) world.charges.push(made);
    return made.heard ? answer : undefined;
  }
  if (world.charges.length === 0) return undefined;
  const made = one(world.charges, step.at);
  if (step.do === 'charge again') await send(world, redis, made);
  else if (step.do === 'leave') {
    await leave(redis, made.grant.ref, made.chargeId);
    made.places = 0;
  } else if (step.do === 'end place')
    made.leaseEnded = (await renew(redis, world.partition, -1_000, [made.chargeId])) > 0;
  if (step.do === 'refund' && made.heard) {
    made.said ??= { uses: step.uses, cost: step.cost };
    await giveBack(world, redis, made);
  } else if (step.do === 'forestall' && !made.heard) {
    made.said ??= { uses: made.uses, cost: made.cost };
    await giveBack(world, redis, made);
  }
  return undefined;
}

function newCharged(
  grant: GrantState,
  { uses, hold }: { uses: number; hold: number },
  heard: boolean,
): Charged {
  const chargeId = newHoldId();
  const record = JSON.stringify({ charge: chargeId });
  const refundId = newHoldId();
  return {
    chargeId,
    refundId,
    grant,
    uses,
    cost: hold,
    record,
    heard,
    counted: false,
    void: false,
    places: 0,
    leaseEnded: false,
  };
}

/** Asks as a gateway does: loads an unknown grant and asks again. */
async function send(world: World, redis: RedisClient, made: Charged): Promise<Admission> {
  const { chargeId, uses, cost, record } = made;
  const ask = { chargeId, uses, calls: 1, costMicrousd: cost, record, leaseMs: 60_000 };
  let answer = await charge(redis, made.grant.ref, ask);
  // A command that is sent again names the same budgets.
  const isAgain = world.charges.includes(made);
  const isLoaded = isAskedAgain(answer) && (await load(world, redis, made.grant));
  if (isLoaded && !isAgain) made.grant = knownTo(world, redis, made.grant);
  if (isLoaded) answer = await charge(redis, made.grant.ref, ask);
  const counts = answer.is === 'admitted' && uses + cost > 0 && !made.void;
  if (counts) made.counted = true;
  if (answer.is === 'admitted' && !made.void) made.places ||= answer.places;
  return answer;
}

async function giveBack(world: World, redis: RedisClient, made: Charged): Promise<void> {
  const { chargeId, refundId, uses, cost, record, said, grant } = made;
  const what = { chargeId, uses: said?.uses ?? 0, costMicrousd: said?.cost ?? 0, record };
  const gave = made.heard
    ? await refund(redis, grant.ref, { ...what, refundId })
    : await forestall(redis, grant.ref, what);
  made.void = true;
  if (!gave) return;
  if (made.back) world.lost.add(made);
  made.back = { uses: Math.min(what.uses, uses), cost: Math.min(what.costMicrousd, cost) };
}
