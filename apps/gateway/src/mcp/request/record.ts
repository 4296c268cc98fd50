import type { CallRecord } from '@presign/schema';
import { retryCountOf, userAgentOf } from '../../http/how-it-ended.ts';
import type { Charged } from './price.ts';
import type { McpCall } from './request.ts';

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
