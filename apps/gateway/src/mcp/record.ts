import type { CallRecord } from '@presign/schema';
import type { McpCall } from './call.ts';

/** Names are the holder's to write, and are kept with every call. */
const NAME_MAX_CHARS = 255;

/** What of a charge, beside its uses and cost, goes into the ledger. */
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

/** The first tool that is called, or else the first method. */
function toolOf(all: NonNullable<McpCall['messages']>['all']): string | undefined {
  const tool = all.find(({ method, name }) => method === 'tools/call' && name !== undefined);
  return tool?.name ?? all.find(({ method }) => method !== undefined)?.method;
}
