import type { McpDeps } from '../deps.ts';
import { BLOCKED_HINT } from '../http/forward.ts';
import type { McpCall } from './call.ts';
import type { McpSent } from './send.ts';

/**
 * One line a call, a warning where the server was not reached or refused our credential. Neither URL nor header nor
 * arguments: a token rides in the first, secrets in the rest.
 */
export function logMcpCall(
  { log, now }: Pick<McpDeps, 'log' | 'now'>,
  { requestId, method, grant, server, messages, unrun, beganMs }: McpCall,
  sent: McpSent,
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
    uses: unrun.all.uses - unrun.unrun.uses,
    cost: unrun.all.costMicrousd - unrun.unrun.costMicrousd,
    ms: now() - beganMs,
  };
  const hint = sent.is === 'unsent' && sent.blocked ? BLOCKED_HINT : undefined;
  if (isOperators(sent)) log.warn({ ...line, upstream: new URL(server.url).origin, hint }, 'mcp call');
  else log.info(line, 'mcp call');
}

/** What the operator, or who asked for the URL, has to mend. */
function isOperators(sent: McpSent): boolean {
  if (sent.is === 'unanswered') return sent.why === 'timeout' || sent.why === 'failure';
  return sent.is === 'unsent' || sent.is === 'unauthorized';
}
