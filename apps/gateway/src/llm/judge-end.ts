import type { Refusal } from '@presign/schema';
import type { Admitted } from '../limits/admit.ts';
import type { Metered } from './meter.ts';
import type { Plan } from './plan.ts';
import type { Sent } from './send.ts';

/** What a call is charged in the end. */
export type Charge = {
  readonly uses: 0 | 1;
  /** Undefined when the cost is not known and no budget limits spending. */
  readonly costMicrousd: number | undefined;
  /** The part of the cost above the hold. It is recorded and not charged. */
  readonly overrunMicrousd: number;
  /** The provider's usage, if the answer reported it in full. */
  readonly usage: Readonly<Record<string, number>> | undefined;
};

/**
 * Statuses with which a provider refuses the work itself: not authorized, forbidden, rate limited, unavailable,
 * overloaded (529 is Anthropic's, https://platform.claude.com/docs/en/api/errors).
 */
const REFUSED_WORK: ReadonlySet<number> = new Set([401, 403, 429, 503, 529]);

/** Whether an answer with this status gives the use back. */
export const givesUseBack = (status: number): boolean => REFUSED_WORK.has(status);

/**
 * Decides what a call is charged, from how it ended and what its answer reported. Under a spend limit, a call whose cost
 * is not known in full is charged its hold.
 */
export function judge(sent: Sent, metered: Metered, plan: Plan, admitted: Admitted): Charge {
  const usage = sent.is === 'complete' && sent.status < 400 ? metered.reported?.usage : undefined;
  const known = plan.free || paidNothing(sent, metered) ? 0 : usage && plan.pricing?.cost(usage);
  const hold = plan.hold ? admitted.heldMicrousd : undefined;
  const costMicrousd = known === undefined ? hold : Math.min(known, hold ?? known);
  const overrunMicrousd = known === undefined ? 0 : known - (costMicrousd ?? known);
  return { uses: usesKept(sent), costMicrousd, overrunMicrousd, usage };
}

/** True only if the provider certainly did no paid work: it never got the call, or refused or failed it itself. */
function paidNothing(sent: Sent, metered: Metered): boolean {
  if (sent.is !== 'complete')
    return sent.is === 'unsent' || sent.is === 'unsealable' || sent.is === 'unavailable';
  return (sent.status >= 400 && sent.status < 500) || (sent.status >= 500 && metered.ownError);
}

/** A use is given back only if the provider certainly never got the call, or refused the work itself. */
function usesKept(sent: Sent): 0 | 1 {
  switch (sent.is) {
    case 'unsent':
    case 'unsealable':
    case 'unavailable':
      return 0;
    case 'complete':
      return givesUseBack(sent.status) ? 0 : 1;
    case 'broken':
    case 'unanswered':
    case 'failed':
      return 1;
  }
}

/** The refusal of a call that ended without an answer from the provider. */
export function endRefusal(sent: Sent): Refusal | undefined {
  switch (sent.is) {
    case 'complete':
    case 'broken':
      return undefined;
    case 'unavailable':
      return { code: 'limits_unavailable', retryAfterSeconds: 1 };
    case 'unsealable':
    case 'failed':
      return { code: 'internal_error' };
    case 'unsent':
      return sent.blocked
        ? {
            code: 'upstream_unreachable',
            message: "The provider's address is not public, and only public ones are called here.",
          }
        : { code: 'upstream_unreachable' };
    case 'unanswered':
      return { code: UNANSWERED[sent.why] };
  }
}

const UNANSWERED = {
  timeout: 'upstream_timeout',
  revoked: 'grant_revoked',
  left: 'upstream_unreachable',
  failure: 'upstream_unreachable',
} as const;
