import type { CallRecord, LastCall, Refusal } from '@presign/schema';
import type { CallReport } from '../call-report.ts';
import { isCut } from '../http/cut.ts';
import { BLOCKED_HINT } from '../http/forward.ts';
import { failureOf, retryCountOf, timesOf, userAgentOf } from '../http/how-it-ended.ts';
import type { McpDeps } from './mcp-deps.ts';
import type { Amount, Charged } from './price.ts';
import type { McpCall } from './request.ts';
import { isKeptBack, type McpSent } from './send.ts';
import { transportRefusal } from './transport.ts';

/** The holder writes the tool's name, and Redis and the ledger store it with every call. */
const NAME_MAX_CHARS = 255;

/**
 * The fields that the ledger stores of a charge besides its uses and cost, as JSON.
 * @param more the price lines of a charge, or the server's status in a refund
 */
export function mcpRecord(
  {
    requestId,
    policy,
    grant,
    server,
    report,
    incoming,
    beganMs,
  }: Pick<McpCall, 'requestId' | 'policy' | 'grant' | 'server' | 'report' | 'incoming' | 'beganMs'>,
  more: Pick<CallRecord, 'sta' | 'lin'>,
): string {
  // JSON leaves out what is undefined.
  const record: { readonly [F in keyof CallRecord]: CallRecord[F] | undefined } = {
    acc: policy.accountId,
    ses: grant.sessionId,
    grt: grant.id,
    rid: requestId,
    prv: 'mcp',
    srv: server.name,
    beg: beganMs,
    tol: report.tool,
    usr: policy.externalUser,
    sta: more.sta,
    lin: more.lin,
    rty: retryCountOf(incoming.headers),
    agt: userAgentOf(incoming.headers),
  };
  return JSON.stringify(record);
}

/** The most lines of one charge: a batch may call tools of many prices. */
const LINES_MOST = 20;

/** The cost of a charge line by line: the calls of each price. Undefined when it has too many prices. */
export function priceLines(charged: readonly Charged[]): CallRecord['lin'] {
  const calls = new Map<number, number>();
  for (const { costMicrousd } of charged) calls.set(costMicrousd, (calls.get(costMicrousd) ?? 0) + 1);
  if (calls.size > LINES_MOST) return undefined;
  return [...calls].map(([microusd, count]) => ['calls', count, microusd]);
}

/** The first tool that the messages call, or else the first method. */
export function toolOf(all: NonNullable<McpCall['messages']>['all']): string | undefined {
  const tool = all.find(({ method, name }) => method === 'tools/call' && name !== undefined);
  const found = tool?.name ?? all.find(({ method }) => method !== undefined)?.method;
  return found?.slice(0, NAME_MAX_CHARS);
}

/**
 * Notes how a charged call ended: a fault when the server was not reached or refused the stored credential.
 * @param charge what the call costs in the end
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

/** Notes for the ledger how a charged call ended, and how long it took. */
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

/** How an answer of the server fell short. Undefined also where the gateway ends or replaces it with a refusal. */
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
