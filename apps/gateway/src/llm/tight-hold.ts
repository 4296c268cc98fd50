import { type Ask, narrow } from '@presign/limits';
import { encodingOf, modelFacts, type Usage } from '@presign/providers';
import { microdollars } from '@presign/schema';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import { type Admitted, admitCall, type Counted, type Passed } from '../limits/admit.ts';
import { countHere } from './count-here.ts';
import type { Charge } from './judge-end.ts';
import type { CountReply } from './large-body.ts';
import type { LlmDeps } from './llm-deps.ts';
import { type Call, givesBack, type Plan } from './plan.ts';
import type { Counting, Planned } from './plan-body.ts';

/** An admitted call. */
export type Tight = Passed & {
  /** The most input tokens by a token count. Undefined if the call is held by its bytes. */
  readonly countedTokens: number | undefined;
};

/** The call to admit. Its hold is the plan's. */
export type TightCall = {
  readonly requestId: string;
  readonly grant: LlmGrant;
  readonly policy: Policy;
  readonly ask: Omit<Ask, 'hold'>;
};

/**
 * Admits a call by the bytes of its body. If the remaining money or tokens do not cover the bytes, or would lower the output bound, its
 * tokens are counted. The call is then admitted by that count.
 */
export async function admitTightly(
  deps: LlmDeps,
  { requestId, grant, policy, ask }: TightCall,
  { plan, counting }: Planned,
): Promise<Tight | Extract<Counted, { refusal: unknown }>> {
  const { hold, worstTokens } = plan;
  const admit = async ({ hold, worstTokens }: Pick<Plan, 'hold' | 'worstTokens'>) =>
    advised(await admitCall(deps, requestId, grant, policy, { ...ask, hold, worstTokens }), grant, plan);
  if (!givesBack(plan) || !counting || !isCountable(deps, grant, plan)) return tight(await admit(plan));
  const first = await admit({ worstTokens, hold: hold && { ...hold, leastTokens: hold.askedTokens } });
  if (!('refusal' in first) || !OUT_OF_ROOM.has(first.refusal.code)) return tight(first);
  const count = await countIn(deps, grant, plan, counting);
  if (count) return tight(await admit(countedPlan(plan, count)), count.inputTokens);
  // Its output bound may be lowered now.
  return hold && hold.leastTokens < hold.askedTokens ? tight(await admit(plan)) : first;
}

/** A token count does not help a call that holds the whole context window. Its URL needs more money. */
function advised(counted: Counted, { provider }: LlmGrant, { model = '', inputTokens }: Plan): Counted {
  if (!('refusal' in counted) || counted.refusal.code !== 'cost_limit_too_low') return counted;
  const { limit_of, limit, remaining, needed } = counted.refusal.details ?? {};
  if (limit_of !== 'url' || modelFacts(provider, model).contextWindow !== inputTokens) return counted;
  const least = microdollars(Number(limit) - Number(remaining) + Number(needed));
  const message = `This call holds the context window of its model, and may cost ${microdollars(Number(needed))}: raise cost_limit to at least ${least}.`;
  return { refusal: { ...counted.refusal, message } };
}

const tight = (counted: Counted, countedTokens?: number) =>
  'refusal' in counted ? counted : { ...counted, countedTokens };

const OUT_OF_ROOM: ReadonlySet<string> = new Set([
  'cost_limit_too_low',
  'cost_held',
  'token_rate_limited',
  'token_rate_too_low',
  'token_limit_too_low',
  'tokens_held',
]);

const countedPlan = ({ hold }: Plan, { fixedMicrousd, worstTokens }: CountReply) => ({
  hold: hold && fixedMicrousd !== undefined ? { ...hold, fixedMicrousd } : hold,
  worstTokens,
});

const isCountable = ({ uncounted }: LlmDeps, { provider }: LlmGrant, { model = '' }: Plan): boolean =>
  encodingOf(provider, model) !== undefined && !uncounted.has(`${provider.id} ${model}`);

/** Counts a call. Undefined if counting saves nothing, or cannot be done now. */
async function countIn(
  deps: LlmDeps,
  grant: LlmGrant,
  { inputTokens }: Plan,
  counting: Counting,
): Promise<CountReply | undefined> {
  const { here } = counting;
  const count = await (here ? countHere(deps, grant, here) : countInWorker(deps, grant, counting));
  return count && count.inputTokens < inputTokens ? count : undefined;
}

/** Undefined if there is no memory for the worker's copy. */
async function countInWorker(
  deps: LlmDeps,
  grant: LlmGrant,
  { bytes, plan, work }: Counting,
): Promise<CountReply | undefined> {
  const memory = deps.bodyMemory.newReservation();
  memory.belongsTo(grant.id);
  try {
    if (!memory.reserve(bytes)) return undefined;
    return await deps.bodyWorkers.count(grant, work(), plan);
  } finally {
    memory.release();
  }
}

/** Holds calls of a model by their bytes from now on, once it has reported more input than was counted. */
export function checkCount(
  { uncounted, log }: Pick<LlmDeps, 'uncounted' | 'log'>,
  { id, provider }: LlmGrant,
  { model = '' }: Plan,
  { countedTokens }: Tight,
  { usage }: Charge,
): void {
  const reported = usage?.input_tokens ?? 0;
  if (countedTokens === undefined || reported <= countedTokens) return;
  uncounted.add(`${provider.id} ${model}`);
  log.error({ grant: id, provider: provider.id, model, countedTokens, reported }, 'input over its count');
}

/** The hold of a running call. */
export type RunningHold = {
  readonly admitted: () => Admitted;
  /** Lowers the hold, once a stream has stated its input. Absent when the hold cannot be lowered. */
  readonly onInput: ((input: Usage) => void) | undefined;
};

/**
 * A hold that is lowered to the price of the input that the provider states at the start of a stream. A statement below the least possible
 * input is a placeholder, and changes nothing.
 */
export function runningHold(deps: LlmDeps, call: Call, { admitted, countedTokens }: Tight): RunningHold {
  const { plan, policy, holdId } = call;
  let held = admitted.heldMicrousd;
  const { hold, pricing, leastInput } = plan;
  if (!hold || !pricing || !plan.streams || leastInput === undefined || countedTokens !== undefined)
    return { admitted: () => admitted, onInput: undefined };
  const outputMicrousd = held - hold.fixedMicrousd;
  const onInput = (input: Usage) => {
    if ((input.input_tokens ?? 0) < leastInput) return;
    const inputMicrousd = pricing.cost({ ...input, output_tokens: 0 });
    if (inputMicrousd === undefined) return;
    const narrowed = inputMicrousd + outputMicrousd;
    if (held - narrowed < leastWorth(admitted.microusdLeft)) return;
    // Redis may lower the hold although its reply is lost, so from now on the call is charged no more than this.
    held = narrowed;
    deps.leases.lower(holdId, narrowed);
    deps.underWay.track(narrow(deps.redis, policy.ref, holdId, narrowed).catch(() => {}));
  };
  return { admitted: () => ({ ...admitted, heldMicrousd: held }), onInput };
}

/** Lowering a hold takes a round trip, so it must free at least this much: a part of the money that is left. */
const leastWorth = (leftMicrousd: number | undefined): number =>
  Math.max(1, leftMicrousd === undefined ? LEAST_MICROUSD : leftMicrousd / LEAST_PART);

/** One 256th. */
const LEAST_PART = 256;
/** For a URL without its own limit. The gateway does not know what is left of a shared budget. */
const LEAST_MICROUSD = 1_000;
