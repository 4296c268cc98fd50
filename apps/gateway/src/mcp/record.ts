import type { CallRecord } from '@presign/schema';
import type { McpDeps } from '../deps.ts';
import { BLOCKED_HINT } from '../http/forward.ts';
import type { Amount } from './price.ts';
import type { McpCall } from './request.ts';
import type { McpSent } from './send.ts';

/** The holder writes the tool's name, and Redis and the ledger store it with every call. */
const NAME_MAX_CHARS = 255;

/** The fields that the ledger stores of a charge besides its uses and cost, as JSON. */
export function mcpRecord(
  {
    policy,
    grant,
    server,
    messages,
    beganMs,
  }: Pick<McpCall, 'policy' | 'grant' | 'server' | 'messages' | 'beganMs'>,
  status?: number,
): string {
  const tool = toolOf(messages?.all ?? []);
  const record: CallRecord = {
    acc: policy.accountId,
    ses: grant.sessionId,
    grt: grant.id,
    prv: 'mcp',
    srv: server.name,
    beg: beganMs,
    ...(tool === undefined ? {} : { tol: tool.slice(0, NAME_MAX_CHARS) }),
    ...(policy.externalUser === undefined ? {} : { usr: policy.externalUser }),
    ...(status === undefined ? {} : { sta: status }),
  };
  return JSON.stringify(record);
}

/** The first tool that the messages call, or else the first method. */
function toolOf(all: NonNullable<McpCall['messages']>['all']): string | undefined {
  const tool = all.find(({ method, name }) => method === 'tools/call' && name !== undefined);
  return tool?.name ?? all.find(({ method }) => method !== undefined)?.method;
}

/**
 * Logs one line for a call, a warning when the server was not reached or refused the stored credential. The line has no
 * URL, header or argument, because those carry tokens and secrets.
 * @param charge what the call costs in the end
 */
export function logMcpCall(
  { log, now }: Pick<McpDeps, 'log' | 'now'>,
  { requestId, method, grant, server, messages, beganMs }: McpCall,
  sent: McpSent,
  { uses, costMicrousd }: Amount,
): void {
  const line = {
    request_id: requestId,
    session: grant.sessionId,
    grant: grant.id,
    server: server.name,
    method,
    messages: messages?.all.length,
    ended: sent.is,
    error: 'code' in sent ? sent.code : undefined,
    status: 'status' in sent ? sent.status : undefined,
    uses,
    cost: costMicrousd,
    ms: now() - beganMs,
  };
  const hint = sent.is === 'unsent' && sent.blocked ? BLOCKED_HINT : undefined;
  if (isFault(sent)) log.warn({ ...line, upstream: new URL(server.url).origin, hint }, 'mcp call');
  else log.info(line, 'mcp call');
}

/** Whether the operator, or the account that issued the URL, has to act. */
function isFault(sent: McpSent): boolean {
  if (sent.is === 'unanswered') return sent.why === 'timeout' || sent.why === 'failure';
  return sent.is === 'unsent' || sent.is === 'unauthorized';
}
