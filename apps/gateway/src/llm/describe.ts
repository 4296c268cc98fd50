import { type BudgetFigures, findRevoked, readFigures } from '@presign/limits';
import type { GrantStatus, Refusal } from '@presign/schema';
import type { Handler } from 'hono';
import type { GatewayEnv } from '../app.ts';
import type { LlmGrant } from '../grant/llm-grant.ts';
import { ANSWER_HEADERS } from '../http/cors.ts';
import { answerRefusal } from '../http/refuse.ts';
import { getPolicy, outage } from '../limits/admit.ts';
import type { LlmDeps } from './call.ts';
import { splitUrl } from './split-url.ts';

/**
 * `GET /llm/t/<token>`, without a path: what the URL allows, and what of it is used and spent. Costs no use. A
 * grant that draws on its virtual key's budget too is told its own limits only.
 */
export function describeGrant(deps: LlmDeps): Handler<GatewayEnv> {
  return async (c) => {
    const verified = deps.verify(splitUrl(c.env.incoming.url ?? '').token);
    const told = 'refusal' in verified ? verified : await statusOf(deps, c.get('requestId'), verified.grant);
    if ('refusal' in told) return answerRefusal(c, told.refusal);
    return c.json(told.status, 200, { ...ANSWER_HEADERS, 'cache-control': 'no-store' });
  };
}

async function statusOf(
  deps: LlmDeps,
  requestId: string,
  grant: LlmGrant,
): Promise<{ status: GrantStatus } | { refusal: Refusal }> {
  for (const tries of [1, 2]) {
    const found = await getPolicy(deps, requestId, grant);
    if ('refusal' in found) return found;
    const { ref } = found.policy;
    const asked = [readFigures(deps.redis, ref), findRevoked(deps.redis, ref.partition, [ref])] as const;
    const answered = await Promise.all(asked).catch((error: unknown) => outage(deps, requestId, error));
    if ('code' in answered) return { refusal: answered };
    const [[own], revoked] = answered;
    if (own) return { status: toStatus(grant, own, revoked.length > 0) };
    // Remembered here, but gone from Redis: opened anew.
    if (tries === 1) deps.memory.policies.delete(grant.id);
  }
  return { refusal: { code: 'limits_unavailable', retryAfterSeconds: 1 } };
}

const toStatus = (grant: LlmGrant, own: BudgetFigures, revoked: boolean): GrantStatus => ({
  provider: grant.provider.id,
  method: grant.method,
  paths: [...grant.paths],
  session_id: grant.sessionId,
  expires_at: grant.expiresAtMs / 1000,
  revoked,
  max_uses: own.maxUses ?? -1,
  used: own.used,
  cost_limit: own.costLimitMicrousd ?? null,
  calls_per_minute: own.callsPerMinute ?? null,
  spent: own.settledMicrousd,
  held: own.heldMicrousd,
});
