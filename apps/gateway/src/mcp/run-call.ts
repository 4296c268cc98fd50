import { setTimeout as sleep } from 'node:timers/promises';
import { type Refusal, rateLimitHeaders } from '@presign/schema';
import type { McpDeps } from '../deps.ts';
import type { Reservation } from '../http/body-memory.ts';
import type { FlatHeaders } from '../http/headers.ts';
import { ANSWER_HEADERS } from '../http/headers.ts';
import type { Admitted } from '../limits/admit.ts';
import { newHoldId } from '../limits/admit.ts';
import { refundCharge } from '../limits/refund.ts';
import { isKeptBack, McpAnswer, redirects } from './answer.ts';
import type { McpCall } from './call.ts';
import { logMcpCall } from './log.ts';
import { openStream } from './open-stream.ts';
import { mcpRecord } from './record.ts';
import type { Amount } from './refund.ts';
import { sealSession } from './sealed-session.ts';
import { type Cut, type McpSent, sendMcp } from './send.ts';

/** How long an answer waits for a charge to be given back: who calls again at once must find it. */
const GIVING_BACK_MS = 1_000;

/** Sends a charged call, passes its answer on, and gives back what did not run. */
export async function runCall(
  deps: McpDeps,
  call: McpCall,
  admitted: Admitted,
  held: Reservation,
): Promise<Refusal | undefined> {
  const { grant, unrun, outgoing, method } = call;
  const stream = openStream(deps, call);
  const eventBytes = deps.bodyMemory.newReservation();
  const refund = once((amount: Amount, status?: number) => giveBack(deps, call, amount, status));
  const answer: McpAnswer = new McpAnswer(outgoing, {
    ownHeaders: (back) => ownHeaders(call, admitted, back),
    sealSession: (id) => sealSession(deps.encryptionKeys, grant, id),
    openEndpoint:
      method === 'GET' ? (data) => stream.rewrite(data, (message) => answer.tell(message)) : undefined,
    unrun: unrun.all.uses > 0 ? unrun : undefined,
    held: eventBytes,
    becomesOpaque: stream.close,
    giveBack: () => refund(unrun.unrun),
  });
  const cut: Cut = { by: undefined };
  const sent = await sendMcp(deps, call, admitted, answer, cut, held.release);
  eventBytes.release();
  stream.close();
  if (surelyDidNotRun(sent)) await refund(unrun.all, 'status' in sent ? sent.status : undefined);
  // What the answer told before it broke off is told.
  else if (sent.is === 'broken') await refund(unrun.unrun);
  logMcpCall(deps, call, sent);
  if (sent.is === 'complete' && !isKeptBack(sent.status)) await answer.finish();
  if (sent.is === 'broken') answer.abort(cut.by !== undefined);
  return refusalOf(sent, cut);
}

/** As far as the POST's own answer tells: it never arrived, or the server refused it whole. */
function surelyDidNotRun(sent: McpSent): boolean {
  if (sent.is === 'complete') return sent.status < 200 || sent.status >= 300;
  return sent.is !== 'broken' && sent.is !== 'unanswered';
}

async function giveBack(
  deps: McpDeps,
  call: McpCall,
  { uses, costMicrousd }: Amount,
  status?: number,
): Promise<void> {
  if (uses === 0) return;
  const { chargeId, policy } = call;
  const refundId = newHoldId();
  const record = mcpRecord(call, status);
  const work = refundCharge(deps, policy.ref, { chargeId, refundId, uses, costMicrousd, record });
  deps.underWay.track(work);
  await Promise.race([work, sleep(GIVING_BACK_MS, undefined, { ref: false })]);
}

function once<A extends unknown[]>(work: (...args: A) => Promise<void>): (...args: A) => Promise<void> {
  let done: Promise<void> | undefined;
  return (...args) => {
    done ??= work(...args);
    return done;
  };
}

function ownHeaders(
  { requestId, unrun }: McpCall,
  { usesLeft, microusdLeft, rateLimit }: Admitted,
  back: Amount,
): FlatHeaders {
  const headers: FlatHeaders = [];
  for (const [name, value] of Object.entries(ANSWER_HEADERS)) headers.push(name, value);
  headers.push('x-presign-request-id', requestId);
  if (rateLimit)
    for (const [name, value] of Object.entries(rateLimitHeaders(rateLimit))) headers.push(name, value);
  if (usesLeft !== undefined) headers.push('x-presign-uses-remaining', String(usesLeft + back.uses));
  if (microusdLeft !== undefined) {
    headers.push('x-presign-cost-remaining', String(microusdLeft + back.costMicrousd));
  }
  if (unrun.all.uses > 0) {
    headers.push('x-presign-cost', String(unrun.all.costMicrousd - back.costMicrousd));
  }
  return headers;
}

const CUT: Readonly<Record<NonNullable<Cut['by']>, Refusal>> = {
  expiry: { code: 'token_expired' },
  revocation: { code: 'grant_revoked' },
  closing: { code: 'overloaded', message: 'This gateway is going away. Try again.', retryAfterSeconds: 1 },
};

const BROKEN_OFF =
  'The MCP server broke off before it answered. The call may have run there, so its charge stands.';

const REDIRECTED: Refusal = {
  code: 'upstream_unreachable',
  message: 'The MCP server is at another address by now, or at one with or without a final slash.',
};

/** What the holder is told where the server's answer says nothing. */
function refusalOf(sent: McpSent, cut: Cut): Refusal | undefined {
  switch (sent.is) {
    case 'complete':
      return redirects(sent.status) ? REDIRECTED : undefined;
    case 'broken':
      return undefined;
    case 'unauthorized':
      return sent.refusal;
    case 'unavailable':
      return { code: 'limits_unavailable', retryAfterSeconds: 1 };
    case 'failed':
      return { code: 'internal_error' };
    case 'unsent':
      if (cut.by) return CUT[cut.by];
      return { code: 'upstream_unreachable', message: 'The MCP server could not be reached.' };
    case 'unanswered':
      if (cut.by) return CUT[cut.by];
      return sent.why === 'timeout'
        ? { code: 'upstream_timeout', message: 'The MCP server did not answer in time.' }
        : { code: 'upstream_unreachable', message: BROKEN_OFF };
  }
}
