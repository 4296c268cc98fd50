import type { Admission } from '@presign/limits';
import {
  batchOverRate,
  type LastCall,
  microdollars,
  moneyLeft,
  type Refusal,
  rateLimited,
} from '@presign/schema';
import type { Policy } from '../grant/policy.ts';
import { UNAVAILABLE } from '../http/refuse.ts';

/** Answers after which the grant is loaded again, and which are not refusals. */
export type AskedAgain = 'unknown' | 'unbounded' | 'another_window';

/** The refusal of a call that Redis did not admit. */
export function admissionRefusal(
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
  if (owner.limit_of !== 'url') return { code: at.is, message: sharedMessage(at, owner), details };
  if (at.is === 'cost_limit_reached') return { code: at.is, details };
  const message = `This call may cost ${microdollars(at.neededMicrousd)}, and ${moneyLeft(remaining(at))}: ask for less, such as a shorter input, a lower output bound, or fewer or smaller images.`;
  return { code: at.is, message, details };
}

const MESSAGES = {
  virtual_key:
    'The budget of the virtual key behind this URL does not cover this call. A new URL of the same key will not help.',
  budget:
    'A budget that this URL shares with others does not cover this call. A new URL of the same budget will not help.',
};

/** Whose budget has refused a call. The id of a shared budget means nothing to a holder, and identifies the budget for the account. */
type Owner =
  | { readonly limit_of: 'url' | 'virtual_key' }
  | { readonly limit_of: 'budget'; readonly budget: string };

/** @param of the budget's position in `ref.budgetIds`, from 1 */
function ownerOf({ ref: { budgetIds }, sharedIds }: Policy, of: number): Owner {
  if (of === 1) return { limit_of: 'url' };
  const budget = sharedIds[of - 1 - (budgetIds.length - sharedIds.length)];
  return budget === undefined ? { limit_of: 'virtual_key' } : { limit_of: 'budget', budget };
}

function usesRefusal(at: Extract<Admission, { is: 'uses_exhausted' }>, owner: Owner): Refusal {
  const code = 'uses_exhausted';
  const details = { ...owner, ...shown(at, { limit: at.limit, used: at.used }), ...before(at) };
  return owner.limit_of === 'url' ? { code, details } : { code, message: sharedMessage(at, owner), details };
}

type Shown = Pick<CostRefusal, 'isVisible' | 'endsMs'>;

/** The figures of a budget, if the holder may learn them, and when they reset. */
const shown = <F extends object>({ isVisible, endsMs }: Shown, figures: F) =>
  isVisible ? { ...figures, ...(endsMs !== undefined && { resets_at: endsMs / 1000 }) } : {};

function sharedMessage({ endsMs }: Shown, { limit_of }: Owner): string {
  const message = MESSAGES[limit_of === 'virtual_key' ? 'virtual_key' : 'budget'];
  return endsMs === undefined ? message : `${message} It resets at ${new Date(endsMs).toISOString()}.`;
}

/** Only a shared budget limits tokens in total. A holder sees its figures only if it is visible. */
const tokensRefusal = (at: Extract<Admission, { is: TokensRefusal }>, owner: Owner): Refusal => ({
  code: at.is,
  details: {
    ...owner,
    ...shown(at, { limit: at.limit, remaining: Math.max(0, at.limit - at.used) }),
    needed: at.needed,
    ...before(at),
  },
});

type TokensRefusal = 'tokens_held' | 'token_limit_too_low' | 'token_limit_reached';

/** In microdollars: the limit, the part that is not spent, and what this call has to hold. */
const costDetails = (at: CostRefusal, owner: Owner) => ({
  ...owner,
  // A holder must not see the limit and the rest of a shared budget, unless the budget is visible.
  ...shown(at, { limit: at.limitMicrousd, remaining: remaining(at) }),
  needed: at.neededMicrousd,
  ...before(at),
});

/** How the last call of the URL failed, if it did. */
const before = ({ lastCall }: { readonly lastCall: string | undefined }): { last_call?: LastCall } =>
  lastCall === undefined ? {} : { last_call: JSON.parse(lastCall) as LastCall };

const remaining = (at: CostRefusal) => Math.max(0, at.limitMicrousd - at.settledMicrousd);
