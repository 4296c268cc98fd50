import { randomFillSync } from 'node:crypto';
import {
  type Admission,
  type Ask,
  admit,
  type Charge,
  charge,
  checkGrant,
  type GrantRef,
  surelyNotRun,
  UNHEARD,
} from '@presign/limits';
import { batchOverRate, type LastCall, type Refusal, rateLimited } from '@presign/schema';
import { LOADS_MAX, loadGrantOnce, type PolicyDeps } from '../grant/load-policy.ts';
import type { Policy } from '../grant/policy.ts';
import type { VerifiedGrant } from '../grant/verify.ts';
import { outageRefusal, UNAVAILABLE } from '../http/refuse.ts';
import type { Turns } from '../share/turns.ts';
import type { UnderWay } from '../share/under-way.ts';
import { monotonicMs } from './lease-table.ts';
import type { Leases } from './leases.ts';
import { forestallCharge } from './refund.ts';
import type { RetryDeps } from './retry.ts';
import { settleCall } from './settle.ts';

type CountDeps = PolicyDeps & Pick<RetryDeps, 'doubts'> & { readonly leases: Leases };
type ChargeDeps = CountDeps & RetryDeps & { readonly underWay: UnderWay };
type AdmitDeps = ChargeDeps & { readonly leaseMs: number };
export type Admitted = Extract<Admission, { is: 'admitted' }>;

/**
 * Counts the call and holds its cost in one Redis round trip. Returns a refusal when a limit is reached and when
 * anything fails, so that no call passes uncounted.
 */
export const admitCall = (
  deps: AdmitDeps,
  requestId: string,
  grant: VerifiedGrant,
  policy: Policy,
  ask: Ask,
): Promise<Counted> => count(deps, requestId, grant, policy, (ref) => admitOnce(deps, requestId, ref, ask));

/** Like `admitCall`, for a call of known price: it charges the price at once and holds nothing. */
export const chargeCall = (
  deps: ChargeDeps,
  requestId: string,
  grant: VerifiedGrant,
  policy: Policy,
  ask: Charge,
): Promise<Counted> => count(deps, requestId, grant, policy, (ref) => chargeOnce(deps, ref, ask));

/** An admitted call, or the refusal. */
export type Counted = Passed | { refusal: Refusal };

/** `askedMs` is before the lease began, by `monotonicMs`. `policy` names the budgets that the call has drawn on. */
export type Passed = { readonly admitted: Admitted; readonly askedMs: number; readonly policy: Policy };

/** The refusal of a call that was read by earlier limits of the URL. */
export const LIMITS_CHANGED: Refusal = {
  code: 'limits_unavailable',
  message: 'The limits of this URL changed while the call was read. Send the call again.',
  retryAfterSeconds: 1,
};

/** Asks Redis until it has the grant, and makes a refusal of every other answer. */
async function count(
  deps: CountDeps,
  requestId: string,
  grant: VerifiedGrant,
  known: Policy,
  once: (ref: GrantRef) => Promise<Admission>,
): Promise<Counted> {
  // The call may have been planned by an earlier window of a budget.
  let policy = deps.memory.policies.peek(grant.id) ?? known;
  let atMs: number | undefined;
  try {
    for (let i = 0; i < LOADS_MAX; i++) {
      const { budgetIds } = policy.ref;
      // Asked before and after, because a doubt may end between the answer of Redis and this line.
      const wasDoubted = deps.doubts.touch(budgetIds);
      const askedMs = monotonicMs();
      const admission = await once(policy.ref);
      if (admission.is === 'admitted') {
        // The next call is planned without the limit.
        if (hasLostLimit(policy, admission)) void loadGrantOnce(deps, grant).catch(() => {});
        return { admitted: admission, askedMs, policy };
      }
      const isDoubted = wasDoubted || deps.doubts.touch(budgetIds);
      if (isDoubted && FINAL.has(admission.is)) return { refusal: UNAVAILABLE };
      if (!isAskedAgain(admission))
        return { refusal: admissionRefusal(admission, policy, deps.leases.waitSeconds()) };
      if (admission.is === 'another_window') atMs = admission.nowMs;
      const loaded = await loadGrantOnce(deps, grant, { atMs });
      if ('refusal' in loaded) return loaded;
      policy = loaded.policy ?? policy;
      atMs = loaded.atMs;
      // The call was planned by a memory without the limit. Once the memory has it, the next one is planned with it.
      if (admission.is === 'unbounded' && loaded.policy) return { refusal: LIMITS_CHANGED };
    }
    return { refusal: UNAVAILABLE };
  } catch (error) {
    return { refusal: outageRefusal(deps.log, requestId, error) };
  }
}

/** Whether a limit that the gateway remembers was taken away since. */
const hasLostLimit = (
  { costLimited, tokenLimited }: Policy,
  { limitsCost, limitsTokens }: Admitted,
): boolean => (costLimited && !limitsCost) || (tokenLimited === true && !limitsTokens);

/** Answers after which the grant is loaded again. */
const isAskedAgain = (admission: Admission): admission is Extract<Admission, { is: AskedAgain }> =>
  ASKED_AGAIN.has(admission.is);

type AskedAgain = 'unknown' | 'unbounded' | 'another_window';
const ASKED_AGAIN: ReadonlySet<string> = new Set([
  'unknown',
  'unbounded',
  'another_window',
] satisfies AskedAgain[]);

/** Refusals for a limit that seems to be reached for good. */
const FINAL: ReadonlySet<Admission['is']> = new Set([
  'uses_exhausted',
  'cost_limit_reached',
  'cost_limit_too_low',
  'token_limit_reached',
  'token_limit_too_low',
]);

async function admitOnce(deps: AdmitDeps, requestId: string, ref: GrantRef, ask: Ask): Promise<Admission> {
  // `connectRedis` sends nothing without a connection, so Redis cannot have counted the call.
  const isConnected = deps.redis.status === 'ready';
  try {
    return await admit(deps.redis, ref, ask);
  } catch (error) {
    // Voiding calls that were never counted would fill a Redis whose memory is full.
    if (isConnected && !surelyNotRun(deps.redis, error))
      deps.underWay.track(giveUp(deps, requestId, ref, ask));
    throw error;
  }
}

/**
 * Redis may have counted a call although its reply never came. This gives the call back once Redis answers again,
 * whichever of the two scripts runs first. If it never does, the lease runs out and the sweep settles the call in full.
 */
const giveUp = (deps: AdmitDeps, requestId: string, ref: GrantRef, { holdId, record }: Ask) =>
  settleCall(deps, requestId, ref, {
    ...{ holdId, epoch: UNHEARD, uses: 0, costMicrousd: 0, usedTokens: 0, record },
  });

async function chargeOnce(deps: ChargeDeps, ref: GrantRef, ask: Charge): Promise<Admission> {
  const isConnected = deps.redis.status === 'ready';
  try {
    return await charge(deps.redis, ref, ask);
  } catch (error) {
    if (isConnected && ask.uses > 0 && !surelyNotRun(deps.redis, error))
      deps.underWay.track(forestallCharge(deps, ref, { ...ask, record: asRefused(ask.record) }));
    throw error;
  }
}

/** The record of a charge that the gateway refused: reports do not count it as a call. */
const asRefused = (record: string) => `${record.slice(0, -1)},"cod":"${UNAVAILABLE.code}"}`;

function admissionRefusal(
  admission: Exclude<Admission, { is: 'admitted' | AskedAgain }>,
  policy: Policy,
  waitSeconds: number,
): Refusal {
  switch (admission.is) {
    case 'closed':
    case 'backlog':
      return UNAVAILABLE;
    case 'expired':
      return { code: 'token_expired' };
    case 'revoked':
    case 'credential_revoked':
      return { code: 'grant_revoked' };
    case 'suspended':
      return { code: 'account_suspended' };
    case 'uses_exhausted':
      return usesRefusal(admission, ownerOf(policy, admission.of));
    case 'rate_limited':
      return rateLimited(admission, 'This URL');
    case 'batch_over_rate':
      return batchOverRate(admission.rateLimit, admission.needed);
    case 'concurrency_limited':
      return concurrencyRefusal(admission, waitSeconds);
    case 'token_rate_too_low':
      return tooManyTokens(admission);
    case 'cost_held':
      return {
        code: 'cost_held',
        details: costDetails(admission, ownerOf(policy, admission.of)),
        retryAfterSeconds: waitSeconds,
      };
    case 'tokens_held':
      return {
        ...tokensRefusal(admission, ownerOf(policy, admission.of)),
        retryAfterSeconds: waitSeconds,
      };
    case 'token_limit_too_low':
    case 'token_limit_reached':
      return tokensRefusal(admission, ownerOf(policy, admission.of));
    case 'cost_limit_too_low':
    case 'cost_limit_reached':
      return costRefusal(admission, ownerOf(policy, admission.of));
  }
}

/** A batch with more calls than may be under way at once never passes. */
const concurrencyRefusal = (
  { is, limit, needed }: Extract<Admission, { is: 'concurrency_limited' }>,
  waitSeconds: number,
): Refusal =>
  needed > limit
    ? {
        code: is,
        message: `This batch has ${needed} calls, and concurrent_calls allows ${limit} at once. Send fewer calls in a batch.`,
        details: { limit, needed },
        shouldRetry: false,
      }
    : { code: is, details: { limit }, retryAfterSeconds: waitSeconds };

const tooManyTokens = ({ is, limit, needed }: Extract<Admission, { is: 'token_rate_too_low' }>): Refusal => ({
  code: is,
  message: `This call may use ${needed} tokens, and tokens_per_minute of this URL is ${limit}. Shorten its input, or lower its output bound.`,
  details: { limit, needed },
});

type CostRefusal = Extract<Admission, { limitMicrousd: number }>;

function costRefusal(at: CostRefusal, owner: Owner): Refusal {
  const details = costDetails(at, owner);
  if (owner.limit_of !== 'url') return { code: at.is, message: MESSAGES[owner.limit_of], details };
  if (at.is === 'cost_limit_reached') return { code: at.is, details };
  const message = `This call may cost ${at.neededMicrousd} microdollars, and ${remaining(at)} are left: ask for less, such as a shorter input, a lower output bound, or fewer or smaller images.`;
  return { code: at.is, message, details };
}

const MESSAGES = {
  virtual_key:
    'The budget of the virtual key behind this URL does not cover this call. A new URL of the same key will not help.',
  budget:
    'A budget that this URL shares with others does not cover this call. A new URL of the same budget will not help.',
};

/** Whose budget has refused a call. The id of a shared budget says nothing to a holder, and names it for the account. */
type Owner =
  | { readonly limit_of: 'url' | 'virtual_key' }
  | { readonly limit_of: 'budget'; readonly budget: string };

/** @param of the budget's place in `ref.budgetIds`, from 1 */
function ownerOf({ ref: { budgetIds }, sharedIds }: Policy, of: number): Owner {
  if (of === 1) return { limit_of: 'url' };
  const budget = sharedIds[of - 1 - (budgetIds.length - sharedIds.length)];
  return budget === undefined ? { limit_of: 'virtual_key' } : { limit_of: 'budget', budget };
}

function usesRefusal(at: Extract<Admission, { is: 'uses_exhausted' }>, owner: Owner): Refusal {
  const code = 'uses_exhausted';
  if (owner.limit_of !== 'url')
    return { code, message: MESSAGES[owner.limit_of], details: { ...owner, ...before(at) } };
  return { code, details: { ...owner, limit: at.limit, used: at.used, ...before(at) } };
}

/** Only a shared budget limits tokens in all, and a holder must not learn its figures. */
const tokensRefusal = (at: Extract<Admission, { is: TokensRefusal }>, owner: Owner): Refusal => ({
  code: at.is,
  details: { ...owner, needed: at.needed, ...before(at) },
});

type TokensRefusal = 'tokens_held' | 'token_limit_too_low' | 'token_limit_reached';

/** In microdollars: the limit, the part that is not spent, and what this call has to hold. */
const costDetails = (at: CostRefusal, owner: Owner) => ({
  ...owner,
  // A holder must not learn the limit of a budget that other URLs share, or how much of it is left.
  ...(owner.limit_of === 'url' ? { limit: at.limitMicrousd, remaining: remaining(at) } : {}),
  needed: at.neededMicrousd,
  ...before(at),
});

/** How the last call of the URL failed, if it did. */
const before = ({ lastCall }: { readonly lastCall: string | undefined }): { last_call?: LastCall } =>
  lastCall === undefined ? {} : { last_call: JSON.parse(lastCall) as LastCall };

const remaining = (at: CostRefusal) => Math.max(0, at.limitMicrousd - at.settledMicrousd);

const ID_BYTES = 16;
/** Random bytes for many ids at once: asking the system for each id took 4 % of a call's time. */
const pool = Buffer.alloc(ID_BYTES * 256);
let next = pool.length;

/** 128 random bits in hex, which name one hold, charge or refund. */
export function newHoldId(): string {
  if (next === pool.length) {
    randomFillSync(pool);
    next = 0;
  }
  const id = pool.toString('hex', next, next + ID_BYTES);
  next += ID_BYTES;
  return id;
}

type Asked = {
  readonly grant: VerifiedGrant;
  readonly policy: Policy;
  readonly uses: 0 | 1;
  /** A large body would be read, or one of unknown size. */
  readonly readsMuch: boolean;
};

/**
 * Refuses a call before its body is read: the URL has too many answers that wait, or a large body would be refused in the end. Asking
 * Redis takes a round trip, so only large bodies are worth it. It counts nothing.
 */
export function precheck(
  deps: CountDeps & { readonly turns: Turns },
  requestId: string,
  { grant, policy, uses, readsMuch }: Asked,
): Refusal | undefined | Promise<Refusal | undefined> {
  const early = deps.turns.check(grant.id);
  if (early || !readsMuch) return early;
  const ask = { uses, spends: policy.costLimited && uses > 0 };
  return count(deps, requestId, grant, policy, (ref) => checkGrant(deps.redis, ref, ask)).then((counted) =>
    'refusal' in counted ? counted.refusal : undefined,
  );
}
