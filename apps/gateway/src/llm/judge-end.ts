import type { Left } from '@presign/limits';
import {
  type Answered,
  billingOf,
  chargedPrice,
  type Doubt,
  type ErrorFacts,
  type PriceLine,
  type Pricing,
  type Reported,
  type VendorRefusals,
} from '@presign/providers';
import { errorStatus, type LastCall, type Refusal } from '@presign/schema';
import type { FlatHeaders } from '../http/headers.ts';
import { UNAVAILABLE } from '../http/refuse.ts';
import type { Admitted } from '../limits/admit.ts';
import type { Metered } from './meter.ts';
import type { Plan } from './plan.ts';
import type { Sent } from './send.ts';

/** The charge of a call. */
export type Charge = {
  readonly uses: 0 | 1;
  /** Undefined when the cost is not known and no budget limits spending. */
  readonly costMicrousd: number | undefined;
  /** The part of the cost above the hold. It is recorded and not charged. */
  readonly overrunMicrousd: number;
  /** The provider itself states a cost above the hold, so the price of the hold is wrong. */
  readonly disproves: boolean;
  /** The provider's usage, if the answer reported it in full. */
  readonly usage: Readonly<Record<string, number>> | undefined;
  /** The contradiction in the reported usage. */
  readonly doubt: Doubt | undefined;
  /** Input and output. Undefined: not known. */
  readonly usedTokens: number | undefined;
  /** The price by which it was charged: that of the model that answered. */
  readonly pricing: Pricing | undefined;
  /** The name of the model that answered, if that is another one than the call's. */
  readonly model: string | undefined;
  /** The price lines of the usage, before the cost was limited to the hold. Undefined if the cost does not follow from the usage. */
  readonly lines: readonly PriceLine[] | undefined;
};

/** The facts of a call that judge its end. */
type Judged = {
  readonly plan: Plan;
  readonly grant: { readonly provider: { readonly refusals: VendorRefusals } };
};

/**
 * Decides what a call is charged, from how it ended and what its answer reported. Under a spend limit, a call whose cost
 * is not known in full is charged its hold.
 */
export function judge({ plan, grant }: Judged, admitted: Admitted, sent: Sent, metered: Metered): Charge {
  const { refusals } = grant.provider;
  const hold = plan.hold ? admitted.heldMicrousd : undefined;
  const reported = sent.is === 'complete' && sent.status < 400 ? metered.reported : undefined;
  const { usage } = reported ?? {};
  const answered = reported ? plan.answeredBy(reported.model) : { pricing: plan.pricing };
  const charged = reported && chargedPrice(answered.pricing, reported);
  const paid = reported ? charged?.microusd : billedFee(refusals, sent, metered, hold);
  const isFree = plan.free || paidNothing(refusals, sent, metered);
  const known = isFree ? 0 : paid;
  const costMicrousd = known === undefined ? hold : Math.min(known, hold ?? known);
  const overrunMicrousd = known === undefined ? 0 : known - (costMicrousd ?? known);
  const disproves = !isFree && disprovesPrice(answered.pricing, reported, hold);
  const usedTokens = isFree ? 0 : tokensIn(usage);
  const lines = isFree ? undefined : charged?.lines;
  const uses = usesKept(refusals, sent, metered);
  const doubt = reported?.doubt ?? (charged ? undefined : unknownModel(plan, answered));
  // biome-ignore format: one line
  return { uses, costMicrousd, overrunMicrousd, disproves, usage, doubt, usedTokens, lines, pricing: answered.pricing ?? plan.pricing, model: answered.other };
}

/** Whether the stated cost exceeds the hold, although the hold covers the price of the reported usage. */
function disprovesPrice(
  pricing: Pricing | undefined,
  { usage, stated }: Partial<Reported> = {},
  hold = Number.POSITIVE_INFINITY,
): boolean {
  if (usage === undefined || (stated?.microusd ?? 0) <= hold) return false;
  return (pricing?.cost(usage) ?? Number.POSITIVE_INFINITY) <= hold;
}

/** Another model answered, and its cost does not follow from the known price. */
const unknownModel = ({ pricing }: Plan, { other, pricing: found }: Answered): Doubt | undefined =>
  pricing && other !== undefined && !found ? { why: 'model' } : undefined;

function tokensIn(usage: Charge['usage']): number | undefined {
  const { input_tokens: input, output_tokens: output } = usage ?? {};
  const sum = (input ?? Number.NaN) + (output ?? Number.NaN);
  return Number.isSafeInteger(sum) && sum >= 0 ? sum : undefined;
}

/**
 * The provider's own errors that count as free unless its documentation says otherwise. This is an assumption, because
 * most providers do not say which errors they bill. docs/reference/calls.md states it.
 */
const FREE_BY_ASSUMPTION: ReadonlySet<number> = new Set([400, 401, 404, 405, 413, 415, 422, 429]);

const NEVER_SENT: ReadonlySet<Sent['is']> = new Set(['unsent', 'unauthorized', 'unsealable', 'unavailable']);

/** True only if the provider certainly did no paid work: it never got the call, or refused or failed it itself. */
function paidNothing(refusals: VendorRefusals, sent: Sent, { ownError, error }: Metered): boolean {
  if (sent.is !== 'complete') return NEVER_SENT.has(sent.is);
  const { status } = sent;
  if (status < 400) return false;
  const { billing } = billingOf(refusals, status, error);
  // An intermediary may answer with a 5xx while the provider still works.
  if (status >= 500) return ownError && billing !== 'billed';
  return billing === 'free' || (billing === 'undocumented' && FREE_BY_ASSUMPTION.has(status));
}

/** The charge for an error with a documented fee: the fee or the hold, whichever is larger, because the work may also be billed. */
function billedFee(
  refusals: VendorRefusals,
  sent: Sent,
  { error }: Metered,
  hold: number | undefined,
): number | undefined {
  if (sent.is !== 'complete' || sent.status < 400 || error === undefined || hold === undefined)
    return undefined;
  const { feeMicrousd } = billingOf(refusals, sent.status, error);
  return feeMicrousd === undefined ? undefined : Math.max(feeMicrousd, hold);
}

/** A use is returned only if the provider certainly never got the call, or refused the work itself. */
function usesKept(refusals: VendorRefusals, sent: Sent, { error }: Metered): 0 | 1 {
  switch (sent.is) {
    case 'unsent':
    case 'unauthorized':
    case 'unsealable':
    case 'unavailable':
      return 0;
    case 'complete':
      return keepsUse(refusals, sent.status, error) ? 1 : 0;
    case 'broken':
    case 'unanswered':
    case 'failed':
      return 1;
  }
}

/**
 * Statuses with which a provider refuses the work itself: not authorized, rate limited, unavailable, overloaded (529 is
 * Anthropic's, https://platform.claude.com/docs/en/api/errors). A 403 is excluded, because it may be the verdict on
 * finished work, as at xAI. A vendor's own documentation takes precedence.
 */
const REFUSED_WORK: ReadonlySet<number> = new Set([401, 429, 503, 529]);

/**
 * Whether a complete answer with this status keeps the use.
 * @param error undefined if the error's body was not read
 */
export function keepsUse(refusals: VendorRefusals, status: number, error: ErrorFacts | undefined): boolean {
  const { billing } = billingOf(refusals, status, error);
  return billing === 'undocumented' ? !REFUSED_WORK.has(status) : billing === 'billed';
}

/** Whether an answer with this status keeps the use, whatever its body says. */
export const surelyKeepsUse = (refusals: VendorRefusals, status: number): boolean =>
  !REFUSED_WORK.has(status) &&
  (refusals === 'undocumented' ||
    !refusals.some((refusal) => refusal.status === status && refusal.billing === 'free'));

/** How a call failed, for the refusals that follow. Undefined if its holder got a whole answer below 400. */
export function lastCallOf(sent: Sent, hasLeft: boolean, nowMs: number): LastCall | undefined {
  const at = Math.floor(nowMs / 1000);
  if (sent.is === 'unsent' && sent.cut === 'left') return { status: 200, code: 'holder_left', at };
  const refusal = endRefusal(sent);
  if (refusal) return { status: errorStatus(refusal), code: refusal.code, at };
  if (!('status' in sent)) return undefined;
  const { status } = sent;
  if (sent.is === 'broken')
    return { status, code: sent.why === 'left' ? 'holder_left' : 'answer_broken', at };
  if (status >= 400) return { status, code: 'provider_error', at };
  return hasLeft ? { status, code: 'holder_left', at } : undefined;
}

/** The refusal of a call that ended without an answer from the provider. */
export function endRefusal(sent: Sent): Refusal | undefined {
  switch (sent.is) {
    case 'complete':
    case 'broken':
      return undefined;
    case 'unavailable':
      return UNAVAILABLE;
    case 'unsealable':
    case 'failed':
      return { code: 'internal_error' };
    case 'unauthorized':
      return sent.refusal;
    case 'unsent':
      if (sent.cut === 'left') return undefined;
      if (sent.refusal) return sent.refusal;
      return sent.blocked
        ? {
            code: 'upstream_unreachable',
            message: "The provider's address is not public, and this gateway calls only public addresses.",
          }
        : UNREACHED;
    case 'unanswered':
      return UNANSWERED[sent.why];
  }
}

const UNREACHED: Refusal = { code: 'upstream_unreachable' };

const UNANSWERED = {
  timeout: { code: 'upstream_timeout' },
  revoked: { code: 'grant_revoked' },
  suspended: { code: 'account_suspended' },
  expired: { code: 'token_expired' },
  closing: { code: 'overloaded', message: 'This gateway is closing. Try again.', retryAfterSeconds: 1 },
  unleased: UNAVAILABLE,
  unread: UNREACHED,
  over: UNREACHED,
  left: UNREACHED,
  failure: UNREACHED,
} as const satisfies Readonly<Record<string, Refusal>>;

/** The headers that state a settled call's cost, for an answer whose head was kept back. */
export function costHeaders(charge: Charge, admitted: Admitted, left: Left | undefined): FlatHeaders {
  const headers: FlatHeaders = [];
  const costMicrousd = left?.isKept ? admitted.heldMicrousd : charge.costMicrousd;
  if (costMicrousd !== undefined) headers.push('x-presign-cost', String(costMicrousd));
  if (left?.microusd !== undefined) headers.push('x-presign-cost-remaining', String(left.microusd));
  return headers;
}
