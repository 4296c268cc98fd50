import type { GatewayDeps } from '../app.ts';
import type { Call } from './call.ts';
import type { Charge } from './judge-end.ts';
import type { Sent } from './send.ts';

/**
 * One line a call, a warning where the provider was not reached, an error where its key cannot be opened. Neither
 * URL nor header nor body: a token rides in the first, keys and content in the rest.
 */
export function logCall(
  { log, now }: Pick<GatewayDeps, 'log' | 'now'>,
  { requestId, incoming, grant, plan, beganMs }: Call,
  sent: Sent,
  charge: Charge,
): void {
  const line = {
    request_id: requestId,
    holder_request_id: holdersRequestId(incoming.headers['x-request-id']),
    session: grant.sessionId,
    grant: grant.id,
    provider: grant.provider.id,
    method: grant.method,
    ended: sent.is,
    error: errorOf(sent),
    status: 'status' in sent ? sent.status : undefined,
    // An unpriced name may be anything that the holder wrote.
    model: plan.pricing && plan.model,
    uses: charge.uses,
    cost: charge.costMicrousd,
    ms: now() - beganMs,
  };
  const unreached = sent.is === 'unsent' || (sent.is === 'unanswered' && sent.why !== 'revoked');
  const hint = sent.is === 'unsent' && sent.blocked ? BLOCKED : undefined;
  if (unreached) log.warn({ ...line, upstream: grant.origin, hint }, 'call');
  else if (sent.is === 'unsealable') log.error({ ...line, hint: UNSEALABLE }, 'call');
  else log.info(line, 'call');
}

/** What the operator has to know of an address that the guard refused. */
export const BLOCKED = 'the address is not public: only ALLOW_PRIVATE_UPSTREAMS=true lets it be called';

const UNSEALABLE = 'the provider key was sealed with a key that is not in ENCRYPTION_KEYS here';

function errorOf(sent: Sent): string | undefined {
  if (sent.is === 'unanswered') return sent.why;
  return sent.is === 'unsent' ? sent.code : undefined;
}

/** What a holder calls the request, if it looks like an id: short enough that no token fits. */
function holdersRequestId(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value) ? value : undefined;
}
