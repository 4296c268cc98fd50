import type { Left } from '@presign/limits';
import { rateLimitHeaders } from '@presign/schema';
import { ANSWER_HEADERS } from '../http/cors.ts';
import type { FlatHeaders } from '../http/flat-headers.ts';
import type { Admitted } from '../limits/admit.ts';
import type { AnswerPlan } from './answer.ts';
import type { Call } from './call.ts';
import { type Charge, givesUseBack } from './judge-end.ts';

/** How a call's answer is looked at, kept back and headed. */
export function answerPlan(call: Call, admitted: Admitted): AnswerPlan {
  const { spend, dropsUsageEvent, hold, streams } = call.plan;
  return {
    ownHeaders: (status) => ownHeaders(call, admitted, status),
    meter: spend && { spend, dropsUsageEvent },
    streams,
    keepsLast: hold !== undefined,
  };
}

/** What is known once a call is settled, for answers whose head could wait for it. */
export function costHeaders({ costMicrousd }: Charge, left: Left | undefined): FlatHeaders {
  const headers: FlatHeaders = [];
  if (costMicrousd !== undefined) headers.push('x-presign-cost', String(costMicrousd));
  if (left?.microusd !== undefined) headers.push('x-presign-cost-remaining', String(left.microusd));
  return headers;
}

function ownHeaders(
  { requestId, plan }: Call,
  { usesLeft, tokens, rateLimit }: Admitted,
  status: number,
): FlatHeaders {
  const headers: FlatHeaders = [];
  for (const [name, value] of Object.entries(ANSWER_HEADERS)) headers.push(name, value);
  headers.push('x-presign-request-id', requestId);
  if (usesLeft !== undefined) {
    headers.push('x-presign-uses-remaining', String(givesUseBack(status) ? usesLeft + 1 : usesLeft));
  }
  if (rateLimit)
    for (const [name, value] of Object.entries(rateLimitHeaders(rateLimit))) headers.push(name, value);
  if (plan.hold && tokens < plan.hold.askedTokens) headers.push('x-presign-max-tokens', String(tokens));
  return headers;
}
