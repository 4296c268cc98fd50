import type { CallRecord } from '@presign/schema';
import type { GatewayDeps } from '../deps.ts';
import { BLOCKED_HINT } from '../http/forward.ts';
import type { Charge } from './judge-end.ts';
import type { Call } from './plan.ts';
import type { Sent } from './send.ts';

/** The holder writes the model's name, and Redis stores it with every call under way. */
const NAME_MAX_CHARS = 255;

/** The fields that the ledger stores of a call besides its uses and cost, as JSON. */
export function callRecord(
  { policy, grant, plan, beganMs }: Pick<Call, 'policy' | 'grant' | 'plan' | 'beganMs'>,
  status?: number,
  charge?: Charge,
): string {
  // JSON leaves out what is undefined.
  const fields: { readonly [F in keyof CallRecord]: CallRecord[F] | undefined } = {
    acc: policy.accountId,
    ses: grant.sessionId,
    grt: grant.id,
    prv: grant.provider.id,
    beg: beganMs,
    usr: policy.externalUser,
    mod: plan.model?.slice(0, NAME_MAX_CHARS),
    sta: status,
    inp: wholeNumber(charge?.usage?.input_tokens),
    out: wholeNumber(charge?.usage?.output_tokens),
    ovr: charge && charge.overrunMicrousd > 0 ? charge.overrunMicrousd : undefined,
  };
  return JSON.stringify(fields);
}

const wholeNumber = (value: number | undefined) => (Number.isSafeInteger(value) ? value : undefined);

/**
 * Logs one line for a call: a warning when the provider was not reached, an error when its key cannot be decrypted.
 * The line has no URL, header or body, because those carry tokens, keys and content.
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
    error: endError(sent),
    status: 'status' in sent ? sent.status : undefined,
    // A name without a price can be any text that the holder wrote.
    model: plan.pricing && plan.model,
    uses: charge.uses,
    cost: charge.costMicrousd,
    ms: now() - beganMs,
  };
  const unreached = sent.is === 'unsent' || (sent.is === 'unanswered' && sent.why !== 'revoked');
  const hint = sent.is === 'unsent' && sent.blocked ? BLOCKED_HINT : undefined;
  if (unreached) log.warn({ ...line, upstream: grant.origin, hint }, 'call');
  else if (sent.is === 'unsealable') log.error({ ...line, hint: UNSEALABLE_HINT }, 'call');
  else log.info(line, 'call');
}

const UNSEALABLE_HINT = 'the provider key was sealed with a key that is not in ENCRYPTION_KEYS here';

function endError(sent: Sent): string | undefined {
  if (sent.is === 'unanswered') return sent.why;
  return sent.is === 'unsent' ? sent.code : undefined;
}

/** The holder's own request id, if it looks like one. It is too short to hold a token. */
function holdersRequestId(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && /^[\w.-]{1,64}$/.test(value) ? value : undefined;
}
