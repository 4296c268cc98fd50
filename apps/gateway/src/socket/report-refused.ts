import { randomUUID } from 'node:crypto';
import type { Refusal } from '@presign/schema';
import { CallReport } from '../call-report.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmDeps } from '../llm/llm-deps.ts';
import type { SocketOf } from './turn.ts';

/** Reports a refused event that did not become a turn as a refused call of its URL. @returns its request id */
export function reportRefused(
  deps: Pick<LlmDeps, 'report'>,
  { grant, incoming, connectionId }: SocketOf,
  policy: Policy,
  refusal: Refusal,
): string {
  const report = new CallReport('llm', randomUUID(), { method: grant.method, headers: incoming.headers });
  Object.assign(report, { grant, policy, provider: grant.provider.id, connection: connectionId });
  deps.report(report, refusal);
  return report.requestId;
}
