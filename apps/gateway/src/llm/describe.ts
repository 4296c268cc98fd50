import type { IncomingMessage } from 'node:http';
import { type BudgetFigures, findRevoked, readEnd, readFigures } from '@presign/limits';
import { type GrantStatus, type LastCall, type Refusal, showLimits } from '@presign/schema';
import type { Handler } from 'hono';
import { CallReport } from '../call-report.ts';
import type { GatewayEnv, LlmDeps } from '../deps.ts';
import { bindRefusal, boundOrigin } from '../grant/bind.ts';
import { loadPolicy, OPENINGS, openGrantOnce } from '../grant/load-policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import { answerHeaders } from '../http/headers.ts';
import { outageRefusal, refusalAnswer, UNAVAILABLE } from '../http/refuse.ts';
import { splitUrl } from './match.ts';

/**
 * `GET /llm/t/<token>`, without a path: the limits of the URL, and its uses and costs so far. It costs no use. It shows
 * the URL's own limits, and not those of a virtual key's budget.
 */
export function describeGrant(deps: LlmDeps): Handler<GatewayEnv> {
  return async (c) => {
    const incoming = c.env.incoming as IncomingMessage;
    const report = new CallReport('describe', c.get('requestId'), incoming);
    let refusal: Refusal | undefined = { code: 'internal_error' };
    try {
      const read = await findStatus(deps, report, incoming);
      refusal = 'refusal' in read ? read.refusal : undefined;
      if ('refusal' in read) return refusalAnswer(read.refusal, report.requestId);
      const { status, origin } = read;
      return c.json(status, 200, { ...answerHeaders(origin), 'cache-control': 'no-store' });
    } finally {
      deps.report(report, refusal);
    }
  };
}

type Read =
  | { readonly status: GrantStatus; readonly origin: string | undefined }
  | { readonly refusal: Refusal };

async function findStatus(deps: LlmDeps, report: CallReport, incoming: IncomingMessage): Promise<Read> {
  const verified = deps.verify(splitUrl(incoming.url ?? '').token);
  report.grant = 'grant' in verified ? verified.grant : verified.signed;
  if ('refusal' in verified) return verified;
  report.provider = verified.grant.provider.id;
  const begun = deps.freeWork.begin(verified.grant.id, 1, true);
  if ('refusal' in begun) return begun;
  return readStatus(deps, report, incoming, verified.grant).finally(begun.end);
}

async function readStatus(
  deps: LlmDeps,
  report: CallReport,
  incoming: IncomingMessage,
  grant: LlmGrant,
): Promise<Read> {
  const { requestId } = report;
  const found = await loadPolicy(deps, requestId, grant);
  if ('refusal' in found) return found;
  report.policy = found.policy;
  const stranger = bindRefusal(found.policy, incoming, deps.clientAddress);
  if (stranger) return { refusal: stranger };
  const { ref } = found.policy;
  const origin = boundOrigin(found.policy, incoming.headers);
  try {
    for (let i = 0; i < OPENINGS; i++) {
      const asked = [
        readFigures(deps.redis, ref),
        findRevoked(deps.redis, ref.partition, [ref]),
        readEnd(deps.redis, ref),
      ] as const;
      const [[own], revoked, endsMs = grant.expiresAtMs] = await Promise.all(asked);
      if (own) return { origin, status: toStatus(grant, own, revoked.length > 0, endsMs) };
      // Redis has lost the grant, or has its figures from before a loss.
      const opened = await openGrantOnce(deps, grant);
      if ('refusal' in opened) return opened;
    }
    return { refusal: UNAVAILABLE };
  } catch (error) {
    return { refusal: outageRefusal(deps.log, requestId, error) };
  }
}

const toStatus = (grant: LlmGrant, own: BudgetFigures, revoked: boolean, endsMs: number): GrantStatus => ({
  provider: grant.provider.id,
  method: grant.method,
  paths: [...grant.paths],
  session_id: grant.sessionId,
  // The token of an old URL may end before the grant does.
  expires_at: Math.min(grant.expiresAtMs, endsMs) / 1000,
  revoked,
  ...showLimits(own),
  used: own.used,
  spent: own.settledMicrousd,
  held: own.heldMicrousd,
  last_call: own.lastCall === undefined ? null : (JSON.parse(own.lastCall) as LastCall),
});
