import type { McpAuth, Refusal } from '@presign/schema';
import { loadSecret } from '../grant/credential.ts';
import { bodyToSend } from '../http/body.ts';
import { Cutter, isCut } from '../http/cut.ts';
import { type Ended, forward, HEADERS_TIMEOUT_MS, type Receiver } from '../http/forward.ts';
import { type FlatHeaders, holdersHeaders } from '../http/headers.ts';
import type { Admitted } from '../limits/admit.ts';
import { SMALL_BODY_BYTES } from '../share/body-memory.ts';
import { mcpOperation } from '../traces.ts';
import { refusesCredential, refusesWhole } from './answer/statuses.ts';
import type { Authorization } from './auth/authorize.ts';
import { cookieHeader, type Place } from './ids/cookies.ts';
import { lastEndMs } from './request/late.ts';
import type { McpDeps } from './request/mcp-deps.ts';
import { encodeName, listens } from './request/messages.ts';
import { addressOf, readAddress } from './request/price.ts';
import type { McpCall } from './request/request.ts';

/** How sending a call ended. `failed` means that the gateway has a fault. */
export type McpSent =
  | Ended
  | { readonly is: 'unavailable' | 'unsealable' | 'failed' }
  /** No credential could be fetched, or the server refused it. */
  | { readonly is: 'unauthorized'; readonly status?: number; readonly refusal: Refusal };

/** The holder's side of the answer. */
type McpReceiver = Receiver & {
  /**
   * Begins an answer.
   * @param secrets the server is sent them and must not quote them
   * @param place where the call is sent
   * @param cutter ends the call once the rest of the answer is of no use, because it cannot be filtered
   */
  readonly begin: (secrets: readonly string[], place: Place, cutter: Cutter) => void;
  /** Where the last answer redirects to. */
  readonly location: string | undefined;
  /** Resolves when no request waits for an answer on this stream any more. */
  readonly whenIdle: () => Promise<void>;
  /** It is a stream that has brought the answers to all requests of its POST. */
  readonly isOver: boolean;
};

/** Sends a charged call with the real credential. Renews a token that the server refuses, once. Never throws. */
export async function sendMcp(
  deps: McpDeps,
  call: McpCall,
  admitted: Admitted,
  answer: McpReceiver,
): Promise<McpSent> {
  try {
    return await sendWithCredential(deps, call, admitted, answer);
  } catch (error) {
    // Only the error's name is logged: a message may quote a secret.
    const line = { request_id: call.requestId, error: (error as Error).name };
    deps.log.error(line, 'an MCP call could not be sent');
    return { is: 'failed' };
  }
}

async function sendWithCredential(
  deps: McpDeps,
  call: McpCall,
  admitted: Admitted,
  answer: McpReceiver,
): Promise<McpSent> {
  const { accountId, ref } = call.policy;
  const loaded = await loadSecret(deps, call.requestId, call.policy, admitted.credentialVersion);
  if (loaded.is !== 'loaded') return loaded;
  // The issuer has checked and sealed it.
  const auth = JSON.parse(loaded.secret) as McpAuth;
  const credential = { id: ref.credentialId, accountId, auth, serverUrl: call.server.url };
  const first = await deps.authorizer.authorize(credential);
  if ('refusal' in first) return { is: 'unauthorized', ...first };
  const sent = await follow(deps, call, first.authorization, answer);
  const { token } = first.authorization;
  if (sent.is !== 'complete' || sent.status !== 401 || token === undefined)
    return orUnauthorized(sent, credential.auth);
  const second = await deps.authorizer.authorize(credential, token);
  if ('refusal' in second) return { is: 'unauthorized', status: sent.status, ...second };
  const sentAgain = await follow(deps, call, second.authorization, answer);
  return orUnauthorized(hadOnce(sentAgain), credential.auth);
}

/** The end of a call that a server had before, and refused: it is not unsent for the bound of give-backs. */
const hadOnce = (sent: Ended): Ended => (sent.is === 'unsent' ? { ...sent, isBounded: true } : sent);

/** Sends a call, and once more to the place on the same origin that a 307 or 308 names, as `/mcp/` for `/mcp`. */
async function follow(
  deps: McpDeps,
  call: McpCall,
  authorization: Authorization,
  answer: McpReceiver,
): Promise<Ended> {
  const address = upstreamOf(call);
  const sent = await attempt(deps, call, authorization, answer, address);
  const place = sent.is === 'complete' && KEEPS_METHOD.has(sent.status) ? answer.location : undefined;
  const next = place === undefined ? undefined : sameOrigin(place, address);
  if (!next || (call.method === 'POST' && !call.body.bytes)) return sent;
  return hadOnce(await attempt(deps, call, authorization, answer, next));
}

/** RFC 9110 §15.4.8, §15.4.9: these keep method and body. */
const KEEPS_METHOD: ReadonlySet<number> = new Set([307, 308]);

type Address = ReturnType<typeof upstreamOf>;

/** Undefined: the place is elsewhere, and must not get the credential. A place without a query has that of the address. */
function sameOrigin(place: string, { origin, path, query }: Address): Address | undefined {
  const base = origin + path;
  if (!URL.canParse(place, base)) return undefined;
  const url = new URL(place, base);
  if (url.origin !== origin) return undefined;
  return { origin, path: url.pathname, query: url.search === '' ? query : url.search.slice(1) };
}

/** A server's 401, 403 or 407 refuses the stored credential, and not the holder's URL. */
function orUnauthorized(sent: Ended, { type }: McpAuth): McpSent {
  if (sent.is !== 'complete' || !refusesCredential(sent.status)) return sent;
  const refusal: Refusal = {
    code: 'upstream_auth_failed',
    ...(type === 'none' ? { message: NO_CREDENTIAL } : {}),
  };
  return { is: 'unauthorized', status: sent.status, refusal };
}

const NO_CREDENTIAL = 'The MCP server needs a credential, and this URL was issued without one (auth_type).';

/** Whether certainly no request of a POST ran: it never arrived, or the server refused it as a whole. */
export function nothingRan(sent: McpSent): boolean {
  if (sent.is === 'complete') return refusesWhole(sent.status);
  return sent.is !== 'broken' && sent.is !== 'unanswered';
}

/** A server may answer a request although it was cancelled. */
const CANCELLED_MS = 5_000;

/**
 * Ends a call when its grant is revoked or its account suspended, and a stream that only waits for events when the gateway closes or the grant
 * expires. A call that was admitted before `expires_at` may finish, but takes no longer than a call to a provider.
 */
function watchCall(deps: McpDeps, call: McpCall, answer: McpReceiver) {
  const { revocations, leases, closing, now } = deps;
  const { policy, grant, method, messages, unanswered, begun, chargeId, placedMs } = call;
  const cutter = new Cutter();
  const unguard =
    placedMs === undefined
      ? undefined
      : leases.guard({ partition: grant.partition, holdId: chargeId, askedMs: placedMs }, () =>
          cutter.cut('unleased'),
        );
  let expiresAtMs = grant.expiresAtMs;
  const leftMs = () => Math.max(0, expiresAtMs - now());
  const expire = () => cutter.cut('expired');
  const expireWhenIdle = () => void answer.whenIdle().then(expire);
  // A client opens its stream again at another gateway. A POST may finish.
  const close = () => cutter.cut('closing');
  let isOver = false;
  let idling: NodeJS.Timeout | undefined;
  let cancelled: NodeJS.Timeout | undefined;
  const idle = () => {
    if (isOver) return;
    unguard?.();
    // It may have expired while a token was fetched; a timer of 0 ms would come after a quick server's first bytes.
    if (leftMs() > 0) idling = setTimeout(expireWhenIdle, leftMs());
    else expireWhenIdle();
    closing.addEventListener('abort', close);
    if (method !== 'POST' || messages?.all.some(listens)) return;
    begun.isIdle(() => cutter.cut('over'));
    if (unanswered.hasCancelled) cancelled = setTimeout(() => cutter.cut('over'), CANCELLED_MS);
  };
  if (method === 'GET' || unanswered.size > 0) void answer.whenIdle().then(idle);
  const lateMs = () => Math.max(0, lastEndMs(deps, { expiresAtMs }) - now());
  // Whole seconds, because Node has a list of its own for timers of each length.
  const expireLate = () => setTimeout(expire, Math.ceil(lateMs() / 1_000) * 1_000);
  let late = expireLate();
  const moved = (endsMs: number) => {
    expiresAtMs = Math.min(endsMs, grant.expiresAtMs);
    clearTimeout(late);
    late = expireLate();
    if (!idling) return;
    clearTimeout(idling);
    idling = setTimeout(expireWhenIdle, leftMs());
  };
  const unwatch = revocations.watch(policy.ref, cutter, { moved });
  const release = () => {
    isOver = true;
    unwatch();
    unguard?.();
    for (const timer of [idling, cancelled, late]) clearTimeout(timer);
    closing.removeEventListener('abort', close);
  };
  return { cutter, release };
}

/** The address that a call is sent to. */
export const upstreamOf = ({ endpoint, server }: Pick<McpCall, 'endpoint' | 'server'>) =>
  endpoint ? readAddress(endpoint.href) : addressOf(server);

/** The head of a stream and the 202 of the 2024-11-05 transport come at once. Some servers never send them. */
const PROMPT_MS = 30_000;

/** No MCP URL is valid for longer than a day, so no stream is open for longer. */
export const LONGEST_MS = 86_400_000;

async function attempt(
  deps: McpDeps,
  call: McpCall,
  authorization: Authorization,
  answer: McpReceiver,
  address: Address,
): Promise<Ended> {
  const { endpoint, method, body, bodyMemory } = call;
  const { bytes } = body;
  // A body that may be sent a second time, with another access token or after a redirect, stays in memory.
  const isOnce = authorization.token === undefined && (bytes?.length ?? 0) > SMALL_BODY_BYTES;
  const query = withKey(address.query, authorization.query);
  const traced = deps.traces?.toUpstream(call.report, mcpOperation(call.messages?.all[0]?.method)) ?? [];
  const upstream = {
    origin: address.origin,
    path: address.path + (query === '' ? '' : `?${query}`),
    method,
    headers: [...mcpHeaders(call, authorization, address.path), ...traced],
    body: isOnce ? bodyToSend(bytes, bodyMemory.release) : bytes,
    host: address.origin,
  };
  if (isOnce) body.bytes = null;
  const headersMs = method === 'POST' && !endpoint ? HEADERS_TIMEOUT_MS : PROMPT_MS;
  const turn = deps.turns.of(call.grant.id);
  const bounds = { headersMs, totalMs: LONGEST_MS, readsOn: () => false, turn };
  const life = watchCall(deps, call, answer);
  try {
    answer.begin(secretsIn(authorization), address, life.cutter);
    const ended = await forward(deps, upstream, answer, bounds, life.cutter, call.report);
    return isAsComplete(ended, answer) ? { is: 'complete', status: ended.status } : ended;
  } finally {
    life.release();
  }
}

/** Nothing waits for the rest of a stream that the gateway or the holder ended. */
const isAsComplete = (ended: Ended, { isOver }: McpReceiver): ended is Extract<Ended, { is: 'broken' }> =>
  ended.is === 'broken' && isOver && (ended.why === 'left' || isCut(ended.why));

/** The query of the address, with the key of the credential once: a redirect may repeat it. */
const withKey = (query: string | undefined, key: string | undefined): string =>
  [query, query?.split('&').includes(key ?? '') ? undefined : key].filter(Boolean).join('&');

/** The gateway reads the events that pass, so they come without a coding. */
const IDENTITY = ['accept-encoding', 'identity'];
const REPLACED: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'accept-encoding',
  'mcp-session-id',
  'last-event-id',
]);

function mcpHeaders(call: McpCall, { headers }: Authorization, path: string): FlatHeaders {
  const { incoming, session, lastEventId, taskId } = call;
  const cookies = cookieHeader(call.cookies, path, call.beganMs);
  const { bytes } = call.body;
  const ofKeys = headers.map(([name]) => name.toLowerCase());
  const named = taskId === undefined || incoming.headers['mcp-name'] === undefined ? undefined : taskId;
  const kept = holdersHeaders(
    incoming.rawHeaders,
    (name) =>
      REPLACED.has(name) ||
      ofKeys.includes(name) ||
      (name === 'content-type' && bytes !== null) ||
      (name === 'mcp-name' && named !== undefined),
  );
  kept.push(...IDENTITY);
  if (bytes) kept.push('content-type', 'application/json', 'content-length', String(bytes.length));
  if (session !== undefined) kept.push('mcp-session-id', session);
  if (cookies !== undefined) kept.push('cookie', cookies);
  // Another request would bring the events of other streams where none is filtered.
  if (lastEventId !== undefined && call.method === 'GET') kept.push('last-event-id', asBytes(lastEventId));
  if (named !== undefined) kept.push('mcp-name', encodeName(named));
  for (const each of headers) kept.push(...each);
  return kept;
}

/** Header values are Latin-1, in which each character is a byte. */
const asBytes = (text: string): string => Buffer.from(text).toString('latin1');

/** A credential as a server may quote it: as it was sent, and decoded. A scheme is no secret. */
function secretsIn({ headers, query }: Authorization): readonly string[] {
  const inQuery = query?.slice(query.indexOf('=') + 1);
  return [
    ...headers.map(([name, value]) => (/^authorization$/i.test(name) ? value.replace(/^\S+ +/, '') : value)),
    ...(inQuery === undefined ? [] : [inQuery, decodeURIComponent(inQuery)]),
  ];
}
