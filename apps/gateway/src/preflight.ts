import type { Context, Handler } from 'hono';
import type { GatewayEnv } from './call-deps.ts';
import { boundOrigin } from './grant/bind.ts';
import { loadPolicy, type PolicyDeps } from './grant/load-policy.ts';
import type { Verified, VerifiedGrant } from './grant/verify.ts';
import { answerHeaders } from './http/headers.ts';
import { refusalAnswer } from './http/refuse.ts';
import type { FreeWork } from './share/free-work.ts';

type Deps = PolicyDeps & {
  readonly freeWork: FreeWork;
  /** The grant of a URL. Undefined: it is no URL of a grant. */
  readonly grantAt: (url: string) => Verified<VerifiedGrant> | undefined;
};

/** How long a browser may remember a preflight. Chromium allows at most 2 hours. */
const PREFLIGHT_SECONDS = '7200';

/**
 * Answers a CORS preflight (Fetch standard §3.2.2) without costing a use. Method and headers are echoed, because a
 * wildcard does not cover `authorization`. A URL that is bound to origins allows one of them alone. Other OPTIONS requests go on
 * to their route.
 */
export const preflight =
  (deps: Deps): Handler<GatewayEnv> =>
  async (c, next) => {
    const method = c.req.header('access-control-request-method');
    if (method === undefined || c.req.header('origin') === undefined) return next();
    const found = await originFor(deps, c);
    if ('refusal' in found) return found.refusal;
    return c.body(null, 204, {
      ...answerHeaders(found.origin),
      'access-control-allow-methods': method,
      'access-control-allow-headers': c.req.header('access-control-request-headers') ?? '',
      'access-control-max-age': PREFLIGHT_SECONDS,
      vary: 'origin, access-control-request-method, access-control-request-headers',
    });
  };

/** The origin that may call a bound URL; undefined: every origin may. */
async function originFor(
  deps: Deps,
  { env, get }: Context<GatewayEnv>,
): Promise<{ readonly origin: string | undefined } | { readonly refusal: Response }> {
  const { incoming } = env;
  const verified = deps.grantAt(incoming.url ?? '');
  // A URL that is not valid gets its refusal with the call, which a page can read.
  if (!verified || 'refusal' in verified || !verified.grant.isBound) return { origin: undefined };
  const { grant } = verified;
  const requestId = get('requestId');
  const begun = deps.freeWork.begin(grant.id, 1, true);
  if ('refusal' in begun) return { refusal: refusalAnswer(begun.refusal, requestId) };
  const loaded = await loadPolicy(deps, requestId, grant).finally(begun.end);
  if ('refusal' in loaded) return { refusal: refusalAnswer(loaded.refusal, requestId) };
  if (!loaded.policy.conditions?.bind?.origins) return { origin: undefined };
  const origin = boundOrigin(loaded.policy, incoming.headers);
  if (origin !== undefined) return { origin };
  const refusal = refusalAnswer({ code: 'origin_not_allowed' }, requestId);
  refusal.headers.delete('access-control-allow-origin');
  return { refusal };
}
