import type { IncomingHttpHeaders } from 'node:http';
import { costsNothing, dialectOf, pricingOf, spendOf } from '@presign/providers';
import { hasRules, NO_RULES } from '../grant/call-rules.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import { takeAgain, takeWork } from '../share/read-quota.ts';
import { type Arrived, MODEST, type Need } from './body.ts';
import type { CountedHere } from './count-here.ts';
import { refusedBeta, type Unplannable } from './hold.ts';
import type { PlanData, PlannedWith, PlanWork } from './large-body.ts';
import type { LlmDeps } from './llm-deps.ts';
import type { Target } from './match.ts';
import { answeredWith, type Plan, planCall } from './plan.ts';
import { planRead, scanToPlan } from './plan-read.ts';

/** A call whose body has arrived. */
export type Unplanned = {
  readonly grant: LlmGrant;
  readonly target: Target;
  readonly policy: Policy;
  readonly need: Need;
  readonly arrived: Arrived;
  readonly headers: IncomingHttpHeaders;
  readonly now: number;
};

/** A planned call, and the data for counting its tokens if its body is JSON. */
export type Planned = { readonly plan: Plan; readonly counting: Counting | undefined };

export type Counting = {
  /** The size of the copy of the body that a worker reads. */
  readonly bytes: number;
  readonly plan: PlannedWith;
  /** Makes the copy. */
  readonly work: () => PlanWork;
  /** Undefined: a worker reads it. */
  readonly here: CountedHere | undefined;
};

/**
 * Reads a body and plans its call: a small one at once, a large one in a worker. The work draws on the URL's quota. The
 * call keeps the prices of the plan when a list changes.
 */
export async function planBody(
  {
    bodyWorkers,
    readQuota,
    prices,
    memory,
  }: Pick<LlmDeps, 'bodyWorkers' | 'readQuota' | 'prices' | 'memory'>,
  call: Unplanned,
): Promise<Planned | Unplannable> {
  const { grant, target, policy, need, now, arrived } = call;
  const { raw, isJson } = arrived;
  const beta = betaRefusal(call);
  if (beta) return beta;
  const at = { prices: prices.current(), now };
  const rules = hasRules(policy)
    ? memory.rules.of(grant.id, dialectOf(grant.provider, target.path), () => policy)
    : NO_RULES;
  const known = memory.values.of(policy.accountId);
  const asked = { grant, target, rules, limited: policy, at, known };
  if (!isJson || !(raw instanceof Buffer)) {
    const planned = planCall({ ...asked, content: { raw, json: undefined } });
    return 'refusal' in planned ? planned : { ...planned, counting: undefined };
  }
  const scan = takeWork(readQuota, grant, raw, (most) => scanToPlan(raw, need, asked, most));
  const planned = scan && planRead(raw, need, asked, scan, () => takeAgain(readQuota, grant, raw, scan));
  if (planned) {
    if ('refusal' in planned) return planned;
    // A copy, because the bytes are moved to the worker and the buffer may be part of a larger one.
    const work = () => workOf(call, Uint8Array.from(raw), rulesTextOf(policy));
    const plannedWith = { prices: at.prices, provider: grant.provider };
    const isCountedHere = 'parts' in scan && scan.parts <= COUNTED_PARTS;
    const here: CountedHere | undefined = isCountedHere ? countedHere(raw, need, policy, asked) : undefined;
    return { ...planned, counting: { bytes: raw.length, plan: plannedWith, work, here } };
  }
  const reply = await bodyWorkers.plan(grant, workOf(call, raw, rulesTextOf(policy)), grant.provider);
  if ('refusal' in reply) return reply;
  const parts = withBound(reply.plan, reply.plan.askedTokens);
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  // The planned body obeys the rules already.
  const work = () => workOf(call, joined(parts, bytes), undefined);
  const plannedWith = { prices: reply.prices, provider: reply.provider };
  return {
    plan: planOf(reply.plan, call, plannedWith),
    counting: { bytes, plan: plannedWith, work, here: undefined },
  };
}

/** It scans the body again, because the places of long texts take up to half of its size while the call waits for its admission. */
const countedHere = (
  raw: Buffer,
  need: Need,
  { accountId }: Policy,
  asked: Parameters<typeof scanToPlan>[2],
): CountedHere => ({
  ...{ raw, accountId },
  read: () => {
    const scan = scanToPlan(raw, need, asked, MODEST);
    return {
      texts: 'excess' in scan ? [] : scan.texts,
      again: (savedOf) => planRead(raw, need, { ...asked, savedOf }, scan),
    };
  },
});

/** So many parts have about a thousand texts, which take 3 ms to look up. */
const COUNTED_PARTS = 8 * 1024;

/** Betas in the headers of a call. Those in its body are planned with it. */
function betaRefusal({ grant, target, policy, headers }: Unplanned): Unplannable | undefined {
  const { provider, method } = grant;
  if (!(policy.costLimited || policy.tokenLimited) || costsNothing(provider, method, target.path))
    return undefined;
  const spend = spendOf(provider, target.path);
  return spend && refusedBeta(provider, spend, headers, policy);
}

/** The source of a policy's rules as text. A worker parses it only if it has not cached the rules. */
const rulesTextOf = (policy: Policy): string | undefined => {
  const { config, models, conditions } = policy;
  return hasRules(policy) ? JSON.stringify({ config, models, conditions }) : undefined;
};

function workOf(call: Unplanned, bytes: Uint8Array, rulesText: string | undefined): PlanWork {
  const { grant, target, need, now, policy } = call;
  const { method, provider } = grant;
  const limited = { costLimited: policy.costLimited, tokenLimited: policy.tokenLimited };
  const of = { providerId: provider.id, grantId: grant.id, accountId: policy.accountId };
  return { ...of, bytes, need, target, method, now, rulesText, limited };
}

/** A copy, because the parts are sent as they are. */
function joined(parts: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The pieces of a worker's body, with an output bound. */
function withBound({ body, beforeBound }: PlanData, tokens: number): readonly Buffer[] {
  const pieces = body.map((part) =>
    Buffer.from(part.buffer as ArrayBuffer, part.byteOffset, part.byteLength),
  );
  return beforeBound === undefined ? pieces : pieces.toSpliced(beforeBound, 0, Buffer.from(String(tokens)));
}

/** A worker's plan, with the functions that cannot be sent between threads. */
function planOf(plan: PlanData, { target, now }: Unplanned, { prices, provider }: PlannedWith): Plan {
  const { body: _, beforeBound: __, isMetered, ...data } = plan;
  const at = { prices, now };
  const pricing = data.model === undefined ? undefined : pricingOf(provider, data.model, at);
  let left: PlanData | undefined = plan;
  return {
    ...data,
    knowledge: provider.knowledge,
    pricing,
    answeredBy: answeredWith(provider, data.model, at),
    spend: isMetered ? spendOf(provider, target.path) : undefined,
    bodyFor: (tokens) => {
      const pieces = left ? withBound(left, tokens) : [];
      left = undefined;
      return pieces.length === 0 ? null : pieces;
    },
  };
}
