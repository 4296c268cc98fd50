import {
  type Admission,
  admit,
  fixedHold,
  type GrantState,
  keys,
  loadGrant,
  narrow,
  type RedisClient,
  renew,
  revokeGrant,
  settle,
  sweep,
} from '../src/index.ts';
import { newHoldId, newOutcome } from './grant.ts';
import { drainAll, drainRound, readGrant } from './ledger.ts';
import { loseAll } from './redis.ts';
import { keepBounds, putClockBack, rollOver } from './roll-over.ts';
import { putBack, restarted, takeSnapshot } from './snapshot.ts';
import { type ChangeStep, isChangeStep, takeChange } from './take-change.ts';
import { type ChargeStep, isChargeStep, takeCharge } from './take-charge.ts';
import { type Call, type Charged, isAskedAgain, knownTo, latest, load, one, type World } from './world.ts';

/** One thing that happens; numbers choose a grant or call out of those there are. */
export type Step =
  | ChargeStep
  | ChangeStep
  | { readonly do: 'load' | 'revoke'; readonly at: number }
  | {
      readonly do: 'admit';
      readonly at: number;
      readonly uses: number;
      readonly hold: number;
      readonly tokens: number;
    }
  | {
      readonly do: 'settle';
      readonly at: number;
      readonly share: number;
      /** The percentage of its tokens that it used, some above what it could use; null: not known. */
      readonly tokenShare: number | null;
      readonly kept: boolean;
      /** Whether its gateway names the budgets of the present windows. */
      readonly strays: boolean;
    }
  | { readonly do: 'narrow'; readonly at: number; readonly share: number }
  | { readonly do: 'say again' | 'renew' | 'end lease' | 'ask again'; readonly at: number }
  | { readonly do: 'drain'; readonly most: number; readonly trims: boolean }
  | {
      readonly do:
        | 'sweep'
        | 'catch up'
        | 'restart'
        | 'flush'
        | 'snapshot'
        | 'put back'
        | 'roll over'
        | 'clock back';
    };

/** Does one step. Returns the reply to an admission. */
export async function take(world: World, step: Step, nth: number): Promise<Admission | undefined> {
  const redis = one(world.gateways, nth);
  if (isChargeStep(step)) return takeCharge(world, redis, step);
  if (isChangeStep(step)) {
    await takeChange(world, redis, step);
    return undefined;
  }
  switch (step.do) {
    case 'load':
      await load(world, redis, one(world.grants, step.at));
      return undefined;
    case 'admit':
      return call(world, redis, one(world.grants, step.at), step);
    case 'revoke':
      return revoke(world, redis, one(world.grants, step.at));
    case 'drain':
      await drainRound(redis, world.ledger, step.most, step.trims);
      return undefined;
    case 'sweep':
      return sweepAll(world);
    case 'roll over':
      await rollOver(world, redis);
      return undefined;
    case 'clock back':
      await putClockBack(world, redis);
      return undefined;
    case 'restart':
    case 'catch up':
      if (step.do === 'restart') await restarted(redis, world.partition);
      await drainAll(redis, world.ledger);
      return undefined;
    case 'snapshot':
      world.saved = { snapshot: await takeSnapshot(redis, world.partition), made: made(world) };
      return undefined;
    case 'flush':
    case 'put back':
      return lose(world, redis, step.do === 'put back' ? world.saved : undefined);
    default:
      if (world.calls.length > 0) await touch(world, redis, one(world.calls, step.at), step);
      return undefined;
  }
}

/** Lets every lease end and everything reach the ledger, with every grant known to Redis. */
export async function comeToRest(world: World): Promise<void> {
  const redis = one(world.gateways, 0);
  await drainAll(redis, world.ledger);
  await renew(redis, world.partition, -1_000, [
    ...world.calls.map(({ holdId }) => holdId),
    ...world.charges.map(({ chargeId }) => chargeId),
  ]);
  for (const made of [...world.calls, ...world.charges]) made.leaseEnded = true;
  await sweepAll(world);
  await drainAll(redis, world.ledger);
  for (const grant of world.grants) await loadGrant(redis, readGrant(world.ledger, latest(world, grant)));
}

/** Asks as a gateway does: loads an unknown grant and asks again. */
async function call(
  world: World,
  redis: RedisClient,
  grant: GrantState,
  { uses, hold, tokens }: { uses: number; hold: number; tokens: number },
): Promise<Admission> {
  const ask = {
    holdId: newHoldId(),
    uses,
    hold: hold === undefined ? undefined : fixedHold(hold),
    worstTokens: tokens,
    leaseMs: 60_000,
    record: '{}',
  };
  let known = knownTo(world, redis, grant);
  let answer = await admit(redis, known.ref, ask);
  if (isAskedAgain(answer) && (await load(world, redis, grant))) {
    known = knownTo(world, redis, grant);
    answer = await admit(redis, known.ref, ask);
  }
  if (answer.is === 'admitted') {
    const { holdId } = ask;
    world.calls.push({
      holdId,
      grant: known,
      epoch: answer.epoch,
      uses,
      hold,
      tokens,
      is: 'live',
      leaseEnded: false,
      repeats: 0,
    });
  }
  return answer;
}

async function revoke(world: World, redis: RedisClient, grant: GrantState): Promise<undefined> {
  world.revoked.add(grant.ref.id);
  await revokeGrant(redis, { ...grant.ref, expiresAtMs: grant.expiresAtMs });
}

async function touch(
  world: World,
  redis: RedisClient,
  made: Call,
  step: Exclude<Extract<Step, { at: number }>, ChargeStep | ChangeStep>,
): Promise<void> {
  if (step.do === 'settle') {
    const share = Math.floor((made.hold * step.share) / 100);
    made.said ??= step.kept
      ? { uses: made.uses, cost: share, ...tokensOf(made, step.tokenShare) }
      : { uses: 0, cost: 0, tokens: 0, usedTokens: 0 };
    await say(redis, made, step.strays ? await strayed(world, redis, made) : made.grant);
  } else if (step.do === 'narrow') {
    const amount = Math.floor((made.hold * step.share) / 100);
    if ((await narrow(redis, made.grant.ref, made.holdId, amount)) > 0) made.hold = amount;
  } else if (step.do === 'say again' && made.said) await say(redis, made);
  else if (step.do === 'ask again' && made.is === 'live') {
    const { holdId, uses, hold, tokens: worstTokens } = made;
    await admit(redis, made.grant.ref, {
      holdId,
      uses,
      hold: hold === undefined ? undefined : fixedHold(hold),
      worstTokens,
      leaseMs: 60_000,
      record: '{}',
    });
  } else if (step.do === 'renew' || step.do === 'end lease') {
    const held = await renew(redis, world.partition, step.do === 'renew' ? 60_000 : -1_000, [made.holdId]);
    if (held > 0) made.leaseEnded = step.do === 'end lease';
  }
}

/** The grant with its present windows, where Redis has the hold and so knows better. */
async function strayed(world: World, redis: RedisClient, { holdId, grant }: Call): Promise<GrantState> {
  const held = await redis.hexists(keys.hold(world.partition, holdId), 'budgets');
  return held === 1 ? latest(world, grant) : grant;
}

async function say(redis: RedisClient, made: Call, grant = made.grant): Promise<void> {
  const { uses, cost, usedTokens } = made.said ?? {
    ...{ uses: made.uses, cost: made.hold, usedTokens: undefined },
  };
  const outcome = newOutcome(made.holdId, { epoch: made.epoch, uses, costMicrousd: cost, usedTokens });
  const left = await settle(redis, grant.ref, outcome);
  if (!left) return;
  if (left.isKept && made.said) {
    const tokens = usedTokens === 0 ? made.tokens : made.said.tokens;
    made.said = { uses: made.uses, cost: cost === 0 ? made.hold : cost, tokens, usedTokens };
  }
  if (made.is === 'live') made.is = 'said';
  else made.repeats++;
}

/** The tokens that its gateway reports, and those that it is charged. */
function tokensOf({ tokens: most }: Call, share: number | null) {
  const usedTokens = share === null ? undefined : Math.floor((most * share) / 100);
  return { usedTokens, tokens: Math.min(usedTokens ?? most, most) };
}

async function sweepAll(world: World): Promise<undefined> {
  await Promise.all(world.gateways.map((gateway) => sweep(gateway, [world.partition])));
  for (const made of world.calls) if (made.is === 'live' && made.leaseEnded) made.is = 'full';
  for (const made of world.charges) if (made.leaseEnded) made.places = 0;
}

async function lose(world: World, redis: RedisClient, to: World['saved']): Promise<undefined> {
  for (const each of made(world)) {
    const id = 'holdId' in each ? each.holdId : each.chargeId;
    const survives = to ? to.made.has(each) : world.ledger.rows.has(id);
    if (!survives) world.lost.add(each);
  }
  // The mark that voids a charge may be lost, too.
  for (const each of world.charges) each.void = false;
  if (to) {
    await putBack(redis, world.partition, to.snapshot);
    await keepBounds(world, redis);
  } else await loseAll(redis, world.partition);
}

const made = (world: World): ReadonlySet<Call | Charged> =>
  new Set([...world.calls, ...world.charges.filter((each) => each.counted)]);
