import type { GatewayDeps } from '../app.ts';
import type { Call } from './call.ts';
import type { Charge } from './judge-end.ts';
import type { Sent } from './send.ts';

/** One line a call. Neither URL nor header nor body: a token rides in the first, keys and content in the rest. */
export function logCall(
  { log, now }: Pick<GatewayDeps, 'log' | 'now'>,
  { requestId, incoming, grant, plan, beganMs }: Call,
  sent: Sent,
  charge: Charge,
): void {
  log.info(
    {
      request_id: requestId,
      holder_request_id: holdersRequestId(incoming.headers['x-request-id']),
      session: grant.sessionId,
      grant: grant.id,
      provider: grant.provider.id,
      method: grant.method,
      ended: sent.is,
      error: 'code' in sent ? sent.code : undefined,
      status: 'status' in sent ? sent.status : undefined,
      // An unpriced name may be anything that the holder wrote.
      model: plan.pricing && plan.model,
      uses: charge.uses,
      cost: charge.costMicrousd,
      ms: now() - beganMs,
    },
    'call',
  );
}

/** What a holder calls the request, if it looks like an id: short enough that no token fits. */
function holdersRequestId(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value) ? value : undefined;
}
