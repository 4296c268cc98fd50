import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { open } from '@presign/crypto';
import { credentialOf } from '@presign/providers';
import { type CallRecord, credentialContext, type Refusal } from '@presign/schema';
import type { Handler } from 'hono';
import { type Admitted, admitCall, getTerms } from '../admit.ts';
import { answerRefusal } from '../answer-refusal.ts';
import type { GatewayDeps, GatewayEnv } from '../app.ts';
import { ANSWER_HEADERS } from '../cors.ts';
import { type Ended, forward } from '../forward.ts';
import { findSealed, type GrantMemory, type Terms } from '../grant.ts';
import { cleanQuery, type FlatHeaders, requestHeaders } from '../headers.ts';
import { settleCall } from '../settle.ts';
import type { VerifiedGrant, Verifier } from '../verify.ts';
import { logCall } from './log-call.ts';
import { match, type Target } from './match.ts';
import { rewriteBody } from './rewrite-body.ts';
import { splitUrl } from './split-url.ts';

export type LlmDeps = GatewayDeps & { readonly verify: Verifier; readonly memory: GrantMemory };

/** One call under way, as far as it has come. */
type Call = {
  readonly requestId: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly grant: VerifiedGrant;
  readonly target: Target;
  readonly terms: Terms;
  readonly holdId: string;
  readonly beganMs: number;
};

/**
 * `ANY /llm/t/<token>/<path>`: verify → match → admit → forward → settle. Works on Node's own request and
 * answer, because a `Request`/`Response` pair with a body costs more than all the rest.
 */
export function llmCall(deps: LlmDeps): Handler<GatewayEnv> {
  return async (c) => {
    const { incoming, outgoing } = c.env;
    const refusal = await serve(
      deps,
      c.get('requestId'),
      incoming as IncomingMessage,
      outgoing as ServerResponse,
    );
    return refusal ? answerRefusal(c, refusal) : RESPONSE_ALREADY_SENT;
  };
}

/** Serves one call; a refusal is returned only while nothing has been written. */
async function serve(
  deps: LlmDeps,
  requestId: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<Refusal | undefined> {
  const beganMs = deps.now();
  if (incoming.headers.upgrade !== undefined) {
    return { code: 'invalid_request', param: 'Upgrade', message: 'Upgrade: this URL cannot be upgraded.' };
  }
  const { token, path, query } = splitUrl(incoming.url ?? '');
  const verified = deps.verify(token);
  if ('refusal' in verified) return verified.refusal;
  const { grant } = verified;
  const matched = match(grant, incoming.method ?? '', path, query);
  if ('refusal' in matched) return matched.refusal;
  const found = await getTerms(deps, grant);
  if ('refusal' in found) return found.refusal;
  const { terms } = found;
  // No dialect has a bound for what its calls can cost yet, so under a spend limit none may pass.
  if (terms.costLimited) return { code: 'cost_unbounded' };

  const { target } = matched;
  const holdId = randomBytes(16).toString('hex');
  const call: Call = { requestId, incoming, outgoing, grant, target, terms, holdId, beganMs };
  const body = await readBody(call);
  if ('refusal' in body) return body.refusal;
  const ask = { holdId, uses: 1, holdMicrousd: undefined, leaseMs: deps.leaseMs, record: record(call) };
  const counted = await admitCall(deps, grant, terms, ask);
  if ('refusal' in counted) return counted.refusal;
  return run(deps, call, body.body, counted.admitted);
}

/** From here on the call is counted: whatever happens, it is settled. */
async function run(
  deps: LlmDeps,
  call: Call,
  body: IncomingMessage | Buffer | null,
  admitted: Admitted,
): Promise<Refusal | undefined> {
  const { grant, terms, holdId } = call;
  deps.leases.add(grant.partition, holdId);
  const ended = await send(deps, call, body, admitted);
  const status = 'status' in ended ? ended.status : undefined;
  const uses = usesKept(ended);
  const outcome = {
    holdId,
    epoch: admitted.epoch,
    uses,
    costMicrousd: undefined,
    record: record(call, status),
  };
  const refusal = refusalOf(ended);
  logCall(deps, call, { ended, uses });
  const settled = settleCall(deps, terms.ref, outcome);
  deps.settling.track(settled);
  // What is refused was given back before the holder hears of it, and may call again at once.
  if (refusal) await settled;
  return refusal;
}

type Sent = Ended | { readonly is: 'unsealable' };

async function send(
  deps: LlmDeps,
  call: Call,
  body: IncomingMessage | Buffer | null,
  admitted: Admitted,
): Promise<Sent> {
  const { incoming, outgoing, grant, target, terms } = call;
  const secret = await unseal(deps, terms, admitted.credentialVersion);
  if (secret === undefined) return { is: 'unsealable' };
  const base = new URL(grant.provider.baseUrl ?? '');
  const headers = requestHeaders(incoming.rawHeaders, credentialOf(grant.provider, target.path), secret);
  const upstream = {
    origin: base.origin,
    path: `${base.pathname === '/' ? '' : base.pathname}${target.path}${cleanQuery(target.query)}`,
    method: grant.method,
    headers: body instanceof Buffer ? withoutLength(headers) : headers,
    body,
  };
  return forward(deps.dispatcher, upstream, outgoing, answerHeaders(call, admitted), deps.upstreamTimeoutMs);
}

async function unseal(deps: LlmDeps, terms: Terms, version: number): Promise<string | undefined> {
  const { accountId, ref } = terms;
  try {
    const found = await findSealed(deps, ref, version);
    return found && open(deps.encryptionKeys, found.sealed, credentialContext(accountId, ref.credentialId));
  } catch (error) {
    deps.log.error(
      { credential: ref.credentialId, error: (error as Error).name },
      'a credential could not be opened',
    );
    return undefined;
  }
}

/** A body is read whole only when a config must act on it; else it streams through. */
async function readBody(
  call: Call,
): Promise<{ body: IncomingMessage | Buffer | null } | { refusal: Refusal }> {
  const { incoming, grant, target, terms } = call;
  const hasBody =
    incoming.headers['content-length'] !== undefined || incoming.headers['transfer-encoding'] !== undefined;
  if (!hasBody || incoming.headers['content-length'] === '0') return { body: null };
  if (!terms.config) return { body: incoming };
  return rewriteBody(incoming, grant.provider, target.path, terms.config);
}

/**
 * A use is given back only if the provider surely never got the call, or refused the work itself:
 * not authorized, forbidden, rate limited, unavailable, overloaded (529 is Anthropic's).
 */
function usesKept(ended: Sent): 0 | 1 {
  switch (ended.is) {
    case 'unsent':
    case 'unsealable':
      return 0;
    case 'complete':
      return REFUSED_WORK.has(ended.status) ? 0 : 1;
    case 'broken':
    case 'unanswered':
      return 1;
  }
}

const REFUSED_WORK: ReadonlySet<number> = new Set([401, 403, 429, 503, 529]);

function refusalOf(ended: Sent): Refusal | undefined {
  switch (ended.is) {
    case 'complete':
    case 'broken':
      return undefined;
    case 'unsealable':
      return { code: 'internal_error' };
    case 'unsent':
      return ended.blocked
        ? { code: 'upstream_unreachable', message: "The provider's address is not public." }
        : { code: 'upstream_unreachable' };
    case 'unanswered':
      return { code: ended.timedOut ? 'upstream_timeout' : 'upstream_unreachable' };
  }
}

function record({ terms, grant, beganMs }: Call, status?: number): string {
  const fields: CallRecord = {
    acc: terms.accountId,
    ses: grant.sessionId,
    grt: grant.id,
    prv: grant.provider.id,
    beg: beganMs,
    ...(terms.externalUser === undefined ? {} : { usr: terms.externalUser }),
    ...(status === undefined ? {} : { sta: status }),
  };
  return JSON.stringify(fields);
}

function answerHeaders({ requestId }: Call, { usesLeft }: Admitted): FlatHeaders {
  const headers: FlatHeaders = [];
  for (const [name, value] of Object.entries(ANSWER_HEADERS)) headers.push(name, value);
  headers.push('x-presign-request-id', requestId);
  if (usesLeft !== undefined) headers.push('x-presign-uses-remaining', String(usesLeft));
  return headers;
}

/** The rewritten body has a length of its own. */
function withoutLength(headers: FlatHeaders): FlatHeaders {
  const kept: FlatHeaders = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() !== 'content-length') kept.push(headers[i] ?? '', headers[i + 1] ?? '');
  }
  return kept;
}
