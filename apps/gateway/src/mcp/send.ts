import { type McpAuth, mcpAuth, type Refusal } from '@presign/schema';
import type { McpDeps } from '../deps.ts';
import { loadSecret } from '../grant/credential.ts';
import { bodyToSend } from '../http/body.ts';
import { type Ended, forward, HEADERS_TIMEOUT_MS } from '../http/forward.ts';
import { type FlatHeaders, holdersHeaders, withoutHeaders } from '../http/headers.ts';
import type { Admitted } from '../limits/admit.ts';
import { type McpAnswer, refusesCredential } from './answer.ts';
import type { Authorization } from './auth/authorize.ts';
import type { McpCall } from './call.ts';
import { secretsIn } from './hide-secrets.ts';

/** How sending ended; all but `Ended` ended here. */
export type McpSent =
  | Ended
  | { readonly is: 'unavailable' | 'failed' }
  /** No credential was to be had, or the server refused it. */
  | { readonly is: 'unauthorized'; readonly status?: number; readonly refusal: Refusal };

/** What ended a call before its server did. */
export type Cut = { by: 'expiry' | 'revocation' | 'closing' | undefined };

/** A stream's head, and the older transport's 202, come at once or never (some servers forget to answer). */
const PROMPT_MS = 30_000;

/** Sends a charged call with the real credential; a token that the server refuses is renewed once. Never throws. */
export async function sendMcp(
  deps: McpDeps,
  call: McpCall,
  admitted: Admitted,
  answer: McpAnswer,
  cut: Cut,
  giveBackBody: () => void,
): Promise<McpSent> {
  try {
    const { accountId, ref } = call.policy;
    const loaded = await loadSecret(deps, call.requestId, call.policy, admitted.credentialVersion);
    if (loaded.is === 'unavailable') return { is: 'unavailable' };
    if (loaded.is === 'unsealable') return { is: 'failed' };
    const credential = { id: ref.credentialId, accountId, auth: mcpAuth.parse(JSON.parse(loaded.secret)) };
    const first = await deps.authorizer.authorize(credential);
    if ('refusal' in first) return { is: 'unauthorized', ...first };
    const sent = await attempt(deps, call, first.authorization, answer, cut, giveBackBody);
    const { token } = first.authorization;
    if (sent.is !== 'complete' || sent.status !== 401 || token === undefined)
      return told(sent, credential.auth);
    const second = await deps.authorizer.authorize(credential, token);
    if ('refusal' in second) return { is: 'unauthorized', ...second };
    const again = await attempt(deps, call, second.authorization, answer, cut, giveBackBody);
    return told(again, credential.auth);
  } catch (error) {
    // Only its name: a message may quote what must stay secret.
    deps.log.error(
      { request_id: call.requestId, error: (error as Error).name },
      'an MCP call could not be sent',
    );
    return { is: 'failed' };
  }
}

/** A server's 401 or 403 is about our credential, not about the holder's. */
function told(sent: Ended, { type }: McpAuth): McpSent {
  if (sent.is !== 'complete' || !refusesCredential(sent.status)) return sent;
  const refusal: Refusal = {
    code: 'upstream_auth_failed',
    ...(type === 'none' ? { message: NO_CREDENTIAL } : {}),
  };
  return { is: 'unauthorized', status: sent.status, refusal };
}

const NO_CREDENTIAL = 'The MCP server wants a credential, and this URL was issued without one (auth_type).';

async function attempt(
  deps: McpDeps,
  call: McpCall,
  authorization: Authorization,
  answer: McpAnswer,
  cut: Cut,
  giveBackBody: () => void,
): Promise<Ended> {
  const { grant, policy, server, endpoint, method, body } = call;
  answer.hide(secretsIn(authorization));
  const url = new URL(endpoint?.href ?? server.url);
  const query = [url.search.slice(1), authorization.query].filter(Boolean).join('&');
  const upstream = {
    origin: url.origin,
    path: url.pathname + (query === '' ? '' : `?${query}`),
    method,
    headers: mcpHeaders(call, authorization),
    body: authorization.token === undefined ? bodyToSend(body, giveBackBody) : body,
  };
  const stop = { cut: () => {}, isCut: false };
  const end = (by: Cut['by']) => () => {
    cut.by = by;
    stop.isCut = true;
    stop.cut();
  };
  const unwatch = deps.revocations.watch(policy.ref, end('revocation'));
  const expiry = setTimeout(end('expiry'), Math.max(0, grant.expiresAtMs - deps.now()));
  // A GET only waits: its client opens another, at another gateway. A POST is worked on, and may end.
  const close = end('closing');
  if (method === 'GET') deps.closing.addEventListener('abort', close);
  const headersMs = method === 'POST' && !endpoint ? HEADERS_TIMEOUT_MS : PROMPT_MS;
  const bounds = { headersMs, totalMs: LONGEST_MS, whenHolderLeaves: 'stop' } as const;
  return forward(deps.dispatcher, upstream, answer, bounds, stop).finally(() => {
    unwatch();
    clearTimeout(expiry);
    deps.closing.removeEventListener('abort', close);
  });
}

/** No MCP URL lives longer than a day, so none of its streams does. */
const LONGEST_MS = 86_400_000;

function mcpHeaders({ incoming, session, body }: McpCall, { header }: Authorization): FlatHeaders {
  const replaced = ['content-length', 'content-encoding', 'accept-encoding', 'mcp-session-id'];
  const kept = withoutHeaders(holdersHeaders(incoming.rawHeaders), [
    ...replaced,
    ...(body ? ['content-type'] : []),
    ...(header ? [header[0].toLowerCase()] : []),
  ]);
  return [
    ...kept,
    // Events are read on their way.
    ...['accept-encoding', 'identity'],
    ...(body ? ['content-type', 'application/json', 'content-length', String(body.length)] : []),
    ...(session === undefined ? [] : ['mcp-session-id', session]),
    ...(header ?? []),
  ];
}
