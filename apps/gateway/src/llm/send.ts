import { PARTIAL_ANSWER_HEADERS, PARTIAL_ANSWER_QUERY_KEYS, type Spend } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { LlmDeps } from '../deps.ts';
import { loadSecret } from '../grant/credential.ts';
import { type Body, bodyToSend } from '../http/body.ts';
import { Cutter } from '../http/cut.ts';
import { READABLE_CODINGS } from '../http/decoder.ts';
import { type Bounds, type Ended, forward, HEADERS_TIMEOUT_MS, type Receiver } from '../http/forward.ts';
import {
  cleanQuery,
  type FlatHeaders,
  headerOf,
  holdersHeaders,
  withHeader,
  withoutHeaders,
} from '../http/headers.ts';
import type { Passed } from '../limits/admit.ts';
import { llmOperation } from '../traces.ts';
import { authorize } from './authorize.ts';
import { type Call, givesBack } from './plan.ts';

/**
 * How sending a call ended. Apart from `Ended`, the call was not sent: `unauthorized` means that the provider's credential
 * cannot be used, and `failed` that the gateway has a fault.
 */
export type Sent =
  | Ended
  | { readonly is: 'unavailable' }
  | { readonly is: 'unsealable' }
  | { readonly is: 'unauthorized'; readonly refusal: Refusal }
  | { readonly is: 'failed' };

/** The holder's side of the answer. `hide` names the key that an error may quote. */
type LlmReceiver = Receiver & { readonly hide: (secrets: readonly string[]) => void } & Pick<
    Bounds,
    'readsOn'
  >;

/** Sends an admitted call with the real credential and passes the answer on. Never throws, because the call must be settled. */
export async function send(deps: LlmDeps, call: Call, passed: Passed, answer: LlmReceiver): Promise<Sent> {
  try {
    return await sendWithCredential(deps, call, passed, answer);
  } catch (error) {
    // Only the error's name is logged: a message may quote a secret.
    deps.log.error({ request_id: call.requestId, error: (error as Error).name }, 'a call could not be sent');
    return { is: 'failed' };
  }
}

async function sendWithCredential(
  deps: LlmDeps,
  call: Call,
  { admitted, askedMs }: Passed,
  answer: LlmReceiver,
): Promise<Sent> {
  const { incoming, grant, target, policy, plan } = call;
  const loaded = await loadSecret(deps, call.requestId, policy, admitted.credentialVersion);
  if (loaded.is !== 'loaded') return loaded;
  // Only a spend limit lowers the bound.
  const bound = plan.hold ? Math.min(admitted.tokens, plan.askedTokens) : plan.askedTokens;
  const body = plan.bodyFor(bound);
  const all = holdersHeaders(incoming.rawHeaders);
  const given = call.isDecoded ? withoutHeaders(all, ['content-encoding']) : all;
  // With the holder's own charset or content type, the provider would read another body than the one checked.
  const typed = plan.rewritten ? asJson(given) : given;
  const sent = bodyToSend(body, call.bodyMemory.release);
  const traced = deps.traces?.toUpstream(call.report, llmOperation(target.path, call.report));
  const headers = sized(meteredHeaders(call, typed), body, sent);
  const unauthorized = {
    origin: grant.origin,
    path: `${grant.basePath}${target.path}${cleanQuery(target.query, plan.spend && PARTIAL_ANSWER_QUERY_KEYS)}`,
    method: grant.method,
    headers: traced ? [...headers, ...traced] : headers,
  };
  const authorized = await authorize(
    deps,
    call,
    { secret: loaded.secret, version: admitted.credentialVersion },
    unauthorized,
    body,
  );
  if ('refusal' in authorized) return { is: 'unauthorized', refusal: authorized.refusal };
  answer.hide(authorized.secrets);
  const upstream = { ...unauthorized, ...authorized.changes, body: sent };
  const cutter = new Cutter();
  const unwatch = deps.revocations.watch(policy.ref, (why) => cutter.cut(why));
  const { partition } = grant;
  const unguard =
    admitted.places > 0 ? deps.leases.guard({ partition, askedMs }, () => cutter.cut('unleased')) : undefined;
  const totalMs = deps.upstreamTimeoutMs;
  const headersMs = Math.min(HEADERS_TIMEOUT_MS, totalMs);
  const turn = deps.turns.of(grant.id);
  const bounds = { headersMs, totalMs, readsOn: () => answer.readsOn(), turn };
  try {
    const ended = await forward(deps.dispatcher, upstream, answer, bounds, cutter, call.report);
    if ('status' in ended && ended.status === 401) authorized.refused?.();
    return ended;
  } finally {
    unwatch();
    unguard?.();
  }
}

/** The headers of a body that the gateway decoded and wrote as JSON. */
const asJson = (headers: FlatHeaders): FlatHeaders =>
  withHeader(withoutHeaders(headers, ['content-encoding']), 'content-type', 'application/json');

/** States the length of a body that is sent in pieces. undici states it for a body in one piece. */
function sized(headers: FlatHeaders, body: Body, sent: Body): FlatHeaders {
  if (!(body instanceof Buffer)) return headers;
  const sizeless = withoutHeaders(headers, ['content-length']);
  return sent === body ? sizeless : [...sizeless, 'content-length', String(body.length)];
}

/** Asks for an answer that the gateway can meter: whole, at the standard price, in a coding that it can decode. */
function meteredHeaders({ plan, incoming }: Call, headers: FlatHeaders): FlatHeaders {
  const { spend, streams } = plan;
  if (!spend) return headers;
  const accepted = String(incoming.headers['accept-encoding'] ?? '').split(',');
  const readable = accepted.map((each) => each.trim()).filter((each) => READABLE_CODINGS.has(codingOf(each)));
  const coding = streams || readable.length === 0 ? 'identity' : readable.join(', ');
  const whole = withoutHeaders(headers, PARTIAL_ANSWER_HEADERS);
  const priced = givesBack(plan) ? withoutPriced(spend, whole) : whole;
  return withHeader(priced, 'accept-encoding', coding);
}

/** `gzip;q=0.5` → `gzip` (RFC 9110 §12.5.3). */
const codingOf = (accepted: string) => (accepted.split(';', 1)[0] ?? '').trim().toLowerCase();

/** Drops headers that change the price, and keeps those values that are known not to. */
function withoutPriced(
  { pricedHeaders = [], harmlessHeaderValues = {} }: Spend,
  headers: FlatHeaders,
): FlatHeaders {
  const kept = withoutHeaders(headers, pricedHeaders);
  for (const name of pricedHeaders) {
    const values = (headerOf(headers, name) ?? '').split(',').map((value) => value.trim());
    const harmless = values.filter((value) => harmlessHeaderValues[name]?.has(value));
    if (harmless.length > 0) kept.push(name, harmless.join(','));
  }
  return kept;
}
