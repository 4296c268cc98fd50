import type { McpCall, McpDeps } from './call.ts';
import type { McpSent } from './send-mcp.ts';

/** One line a call. Neither URL nor header nor arguments: a token rides in the first, secrets in the rest. */
export function logMcpCall(
  { log, now }: Pick<McpDeps, 'log' | 'now'>,
  { requestId, method, grant, server, messages, unrun, beganMs }: McpCall,
  sent: McpSent,
): void {
  log.info(
    {
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
    },
    'mcp call',
  );
}
