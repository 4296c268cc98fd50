import type { LastCall, Refusal } from '@presign/schema';
import type { CallReport } from '../call-report.ts';
import { isCut } from '../http/cut.ts';
import { BLOCKED_HINT } from '../http/forward.ts';
import { failureOf, timesOf } from '../http/how-it-ended.ts';
import { isKeptBack } from './answer/statuses.ts';
import { transportRefusal } from './answer/transport.ts';
import type { McpDeps } from './request/mcp-deps.ts';
import type { Amount } from './request/price.ts';
import type { McpCall } from './request/request.ts';
import type { McpSent } from './send.ts';

/**
 * Reports how a charged call ended. It is a fault if the server was not reached or refused the stored credential.
 * @param charge the final cost of the call
 */
export function endOf(call: McpCall, sent: McpSent, { uses, costMicrousd }: Amount): CallReport['end'] {
  const hint = sent.is === 'unsent' && sent.blocked ? BLOCKED_HINT : undefined;
  return {
    ended: sent.is,
    error: errorOf(sent),
    upstreamStatus: 'status' in sent ? sent.status : undefined,
    code: codeOf(call, sent),
    uses,
    costMicrousd,
    ...(isFault(sent) && { fault: { level: 'warn', upstream: new URL(call.server.url).origin, hint } }),
  };
}

/** Records for the ledger how a charged call ended, and how long it took. */
export function noteEnd(
  { endedCalls }: Pick<McpDeps, 'endedCalls'>,
  { grant, charged, chargeId, report }: McpCall,
  sent: McpSent,
  refusal: Refusal | undefined,
): void {
  // A free call has no row.
  if (charged.length === 0) return;
  const { fby, tot, own } = timesOf(report);
  const sta = 'status' in sent ? sent.status : undefined;
  const cod = failureOf(sent, report.end?.code ?? refusal?.code);
  endedCalls.add(grant.partition, { chg: chargeId, sta, cod, fby, tot, own });
}

function errorOf(sent: McpSent): string | undefined {
  if (sent.is === 'unanswered' || sent.is === 'broken') return sent.why;
  return 'code' in sent ? sent.code : undefined;
}

/** How an answer of the server was incomplete. Undefined also if the gateway ends or replaces the answer with a refusal. */
function codeOf(call: McpCall, sent: McpSent): LastCall['code'] | undefined {
  if (sent.is === 'broken') {
    if (isCut(sent.why)) return undefined;
    return sent.why === 'left' ? 'holder_left' : 'answer_broken';
  }
  const isError = sent.is === 'complete' && sent.status >= 400 && !isKeptBack(sent.status);
  return isError && !transportRefusal(call, sent.status) ? 'provider_error' : undefined;
}

/** Whether the operator, or the account that issued the URL, has to act. */
function isFault(sent: McpSent): boolean {
  if (sent.is === 'unanswered') return sent.why === 'timeout' || sent.why === 'failure';
  return sent.is === 'unsent' || sent.is === 'unauthorized';
}
