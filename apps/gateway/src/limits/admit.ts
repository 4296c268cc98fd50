import {
  type Admission,
  type Ask,
  admit,
  type Charge,
  charge,
  type GrantRef,
  UNHEARD,
} from '@presign/limits';
import { causeOf, type Refusal, RefusedError, rateLimited } from '@presign/schema';
import type { GatewayDeps } from '../app.ts';
import { findPolicy, type GrantMemory, openFromPostgres, type Policy } from '../grant/policy.ts';
import type { VerifiedGrant } from '../grant/verify.ts';
import { forestallCharge } from './refund.ts';
import { settleCall } from './settle.ts';

type Deps = Pick<GatewayDeps, 'db' | 'redis' | 'log'> & { readonly memory: GrantMemory };
type ChargeDeps = Deps & Pick<GatewayDeps, 'underWay'>;
type AdmitDeps = Deps & Pick<GatewayDeps, 'leases' | 'leaseMs' | 'underWay'>;
export type Admitted = Extract<Admission, { is: 'admitted' }>;

/** A grant may have to be opened anew when Redis changes under us, but not for ever. */
const OPENINGS = 4;

/** The grant's policy, opening it in Redis when this is its first call anywhere. */
export async function getPolicy(
  deps: Deps,
  requestId: string,
  grant: VerifiedGrant,
): Promise<{ policy: Policy } | { refusal: Refusal }> {
  try {
    for (let i = 0; i < OPENINGS; i++) {
      const policy = await findPolicy(deps, grant);
      if (policy) return { policy };
      const refusal = await openGrantOnce(deps, grant);
      if (refusal) return { refusal };
    }
    return { refusal: UNAVAILABLE };
  } catch (error) {
    return { refusal: outage(deps, requestId, error) };
  }
}

/**
 * Counts the call and holds its cost in one Redis round trip, or says why it may not pass. Whatever goes
 * wrong on the way is a refusal: nothing passes uncounted.
 */
export const admitCall = (
  deps: AdmitDeps,
  requestId: string,
  grant: VerifiedGrant,
  policy: Policy,
  ask: Ask,
): Promise<Counted> => count(deps, requestId, grant, () => admitOnce(deps, requestId, policy.ref, ask));

/** As `admitCall`, for a call of known price: it is charged at once, and nothing is held. */
export const chargeCall = (
  deps: ChargeDeps,
  requestId: string,
  grant: VerifiedGrant,
  policy: Policy,
  ask: Charge,
): Promise<Counted> => count(deps, requestId, grant, () => chargeOnce(deps, policy, ask));

type Counted = { admitted: Admitted } | { refusal: Refusal };

async function count(
  deps: Deps,
  requestId: string,
  grant: VerifiedGrant,
  once: () => Promise<Admission>,
): Promise<Counted> {
  try {
    for (let i = 0; i < OPENINGS; i++) {
      const admission = await once();
      if (admission.is === 'admitted') return { admitted: admission };
      if (admission.is !== 'unknown') return { refusal: refusalOf(admission) };
      const refusal = await openGrantOnce(deps, grant);
      if (refusal) return { refusal };
    }
    return { refusal: UNAVAILABLE };
  } catch (error) {
    return { refusal: outage(deps, requestId, error) };
  }
}

async function admitOnce(deps: AdmitDeps, requestId: string, ref: GrantRef, ask: Ask): Promise<Admission> {
  // Without a connection nothing is sent (`connectRedis`), so nothing can have been counted.
  const isConnected = deps.redis.status === 'ready';
  try {
    return await admit(deps.redis, ref, ask);
  } catch (error) {
    if (isConnected) deps.underWay.track(giveUp(deps, requestId, ref, ask));
    throw error;
  }
}

/**
 * Redis may have counted a call whose admission we never heard of: it is given back when Redis answers again,
 * whichever of the two arrives first. Not waited for; at last its lease runs out and settles it in full.
 */
const giveUp = (deps: AdmitDeps, requestId: string, ref: GrantRef, { holdId, record }: Ask) =>
  settleCall(deps, requestId, ref, { holdId, epoch: UNHEARD, uses: 0, costMicrousd: 0, record });

async function chargeOnce(deps: ChargeDeps, { ref }: Policy, ask: Charge): Promise<Admission> {
  const isConnected = deps.redis.status === 'ready';
  try {
    return await charge(deps.redis, ref, ask);
  } catch (error) {
    if (isConnected && ask.uses > 0) deps.underWay.track(forestallCharge(deps, ref, ask));
    throw error;
  }
}

const UNAVAILABLE: Refusal = { code: 'limits_unavailable', retryAfterSeconds: 1 };

/** Undefined: opened, or to be tried again. */
async function openGrantOnce(deps: Deps, grant: VerifiedGrant): Promise<Refusal | undefined> {
  const opened = await openFromPostgres(deps, grant);
  switch (opened) {
    case 'ok':
    case 'stale':
      return undefined;
    case 'closed':
      return UNAVAILABLE;
    case 'revoked':
      return { code: 'grant_revoked' };
    case 'absent':
      return { code: 'token_invalid' };
  }
}

function refusalOf(admission: Exclude<Admission, { is: 'admitted' | 'unknown' }>): Refusal {
  switch (admission.is) {
    case 'closed':
    case 'backlog':
      return UNAVAILABLE;
    case 'revoked':
    case 'credential_revoked':
      return { code: 'grant_revoked' };
    case 'uses_exhausted':
      return admission.ofOwn
        ? {
            code: 'uses_exhausted',
            details: { limit_of: 'url', limit: admission.limit, used: admission.used },
          }
        : { code: 'uses_exhausted', message: OF_BUDGET, details: { limit_of: 'virtual_key' } };
    case 'rate_limited':
      return rateLimited(admission, 'This URL');
    case 'cost_held':
      return { code: 'cost_held', details: costDetails(admission), retryAfterSeconds: 1 };
    case 'cost_limit_too_low':
    case 'cost_limit_reached':
      return costRefusal(admission);
  }
}

type CostRefusal = Extract<Admission, { limitMicrousd: number }>;

function costRefusal(at: CostRefusal): Refusal {
  const details = costDetails(at);
  if (!at.ofOwn) return { code: at.is, message: OF_BUDGET, details };
  if (at.is === 'cost_limit_reached') return { code: at.is, details };
  const message = `This call may cost ${at.neededMicrousd} microdollars, and ${remaining(at)} are left: shorten its input or its output bound.`;
  return { code: at.is, message, details };
}

const OF_BUDGET =
  'The budget of the virtual key behind this URL does not cover this call. A new URL of the same key will not help.';

/** Microdollars: the limit, what of it is not spent, and what this call would have to hold. */
const costDetails = (at: CostRefusal) => ({
  // What a budget is, and what others have left of it, is not for whoever holds one of its URLs.
  ...(at.ofOwn
    ? { limit_of: 'url', limit: at.limitMicrousd, remaining: remaining(at) }
    : { limit_of: 'virtual_key' }),
  needed: at.neededMicrousd,
});

const remaining = (at: CostRefusal) => Math.max(0, at.limitMicrousd - at.settledMicrousd);

/** A store failed: said so, never mistaken for a limit. */
export function outage({ log }: Pick<Deps, 'log'>, requestId: string, error: unknown): Refusal {
  const refusal = error instanceof RefusedError ? error.refusal : UNAVAILABLE;
  log.error({ request_id: requestId, ...causeOf(error) }, refusal.code);
  return refusal;
}
