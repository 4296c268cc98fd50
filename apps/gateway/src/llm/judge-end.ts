import type { Refusal } from '@presign/schema';
import type { Admitted } from '../limits/admit.ts';
import type { Metered } from './meter.ts';
import type { Plan } from './plan.ts';
import type { Sent } from './send.ts';

/** What a call is charged. */
export type Charge = {
  readonly uses: 0 | 1;
  /** Undefined: not known, where no limit had to hold. */
  readonly costMicrousd: number | undefined;
  /** What the provider's usage came to beyond the hold: charged to nobody, but told. */
  readonly overrunMicrousd: number;
  /** The provider's usage, where the answer told it in full. */
  readonly usage: Readonly<Record<string, number>> | undefined;
};

/**
 * Statuses with which a provider refuses the work itself: not authorized, forbidden, rate limited, unavailable,
 * overloaded (529 is Anthropic's, https://platform.claude.com/docs/en/api/errors).
 */
const REFUSED_WORK: ReadonlySet<number> = new Set([401, 403, 429, 503, 529]);

/** Whether an answer of this status gives the use back. */
export const givesUseBack = (status: number): boolean => REFUSED_WORK.has(status);

/**
 * What a call is charged, from how it ended and what the answer told. Where a limit must hold, a call whose
 * cost is not known in full is charged its hold.
 */
export function judge(sent: Sent, told: Metered, plan: Plan, admitted: Admitted): Charge {
  const usage = sent.is === 'complete' && sent.status < 400 ? told.reported?.usage : undefined;
  const known = plan.free || paidNothing(sent, told) ? 0 : usage && plan.pricing?.cost(usage);
  const hold = plan.hold ? admitted.heldMicrousd : undefined;
  const costMicrousd = known === undefined ? hold : Math.min(known, hold ?? known);
  const overrunMicrousd = known === undefined ? 0 : known - (costMicrousd ?? known);
  return { uses: usesKept(sent), costMicrousd, overrunMicrousd, usage };
}

/** Only where the provider surely did no paid work: it never got the call, or itself refused or failed it. */
function paidNothing(sent: Sent, told: Metered): boolean {
  if (sent.is !== 'complete')
    return sent.is === 'unsent' || sent.is === 'unsealable' || sent.is === 'unavailable';
  return (sent.status >= 400 && sent.status < 500) || (sent.status >= 500 && told.ownError);
}

/** A use is given back only if the provider surely never got the call, or refused the work itself. */
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

/** What the holder is told where the provider's answer says nothing. */
export function refusalOf(sent: Sent): Refusal | undefined {
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
