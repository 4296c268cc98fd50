import { randomFillSync } from 'node:crypto';
import {
  type Admission,
  type Ask,
  admit,
  type Charge,
  charge,
  type GrantRef,
  surelyNotRun,
  UNHEARD,
} from '@presign/limits';
import type { Refusal } from '@presign/schema';
import { LOADS_MAX, loadGrantOnce, type PolicyDeps } from '../grant/load-policy.ts';
import type { Policy } from '../grant/policy.ts';
import type { VerifiedGrant } from '../grant/verify.ts';
import { outageRefusal, UNAVAILABLE } from '../http/refuse.ts';
import type { UnderWay } from '../share/under-way.ts';
import { type AskedAgain, admissionRefusal } from './admission-refusal.ts';
import { monotonicMs } from './lease-table.ts';
import type { Leases } from './leases.ts';
import { forestallCharge } from './refund.ts';
import type { RetryDeps } from './retry.ts';
import { settleCall } from './settle.ts';

export type CountDeps = PolicyDeps & Pick<RetryDeps, 'doubts'> & { readonly leases: Leases };
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

/** Refuses a call whose body was read under earlier limits of the URL. */
export const LIMITS_CHANGED: Refusal = {
  code: 'limits_unavailable',
  message: 'The limits of this URL changed while the call was read. Send the call again.',
  retryAfterSeconds: 1,
};

/** Asks Redis until it has the grant, and turns every other answer into a refusal. */
export async function count(
  deps: CountDeps,
  requestId: string,
  grant: VerifiedGrant,
  known: Policy,
  once: (ref: GrantRef) => Promise<Admission>,
): Promise<Counted> {
  // The call may have been planned for an earlier window of a budget.
  let policy = deps.memory.policies.peek(grant.id) ?? known;
  let atMs: number | undefined;
  try {
    for (let i = 0; i < LOADS_MAX; i++) {
      const { budgetIds } = policy.ref;
      // Checked before and after, because a doubt may end between the answer of Redis and this line.
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
      // The call was planned from a cached policy without the limit. Once the cache has the limit, the next call is
      // planned with it.
      if (admission.is === 'unbounded' && loaded.policy) return { refusal: LIMITS_CHANGED };
    }
    return { refusal: UNAVAILABLE };
  } catch (error) {
    return { refusal: outageRefusal(deps.log, requestId, error) };
  }
}

/** Whether a cached limit was removed meanwhile. */
const hasLostLimit = (
  { costLimited, tokenLimited }: Policy,
  { limitsCost, limitsTokens }: Admitted,
): boolean => (costLimited && !limitsCost) || (tokenLimited === true && !limitsTokens);

/** Answers after which the grant is loaded again. */
const isAskedAgain = (admission: Admission): admission is Extract<Admission, { is: AskedAgain }> =>
  ASKED_AGAIN.has(admission.is);

const ASKED_AGAIN: ReadonlySet<string> = new Set([
  'unknown',
  'unbounded',
  'another_window',
] satisfies AskedAgain[]);

/** Refusals for a limit that seems to be permanently reached. */
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
    // Voiding uncounted calls would add keys to a Redis that is already full.
    if (isConnected && !surelyNotRun(deps.redis, error))
      deps.underWay.track(giveUp(deps, requestId, ref, ask));
    throw error;
  }
}

/**
 * Redis may have counted a call although its reply was lost. This refunds the call once Redis answers again, whichever
 * of the two scripts runs first. If Redis never answers, the lease expires and the sweep settles the call in full.
 */
const giveUp = (deps: AdmitDeps, requestId: string, ref: GrantRef, { holdId, record }: Ask) =>
  settleCall(deps, requestId, ref, {
    holdId,
    epoch: UNHEARD,
    uses: 0,
    costMicrousd: 0,
    usedTokens: 0,
    record,
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

/** The record of a charge that the gateway refused. Reports do not count it as a call. */
const asRefused = (record: string) => `${record.slice(0, -1)},"cod":"${UNAVAILABLE.code}"}`;

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
