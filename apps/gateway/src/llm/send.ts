import { unseal } from '@presign/crypto';
import {
  credentialOf,
  PARTIAL_ANSWER_HEADERS,
  PARTIAL_ANSWER_QUERY_KEYS,
  type Spend,
} from '@presign/providers';
import { credentialContext } from '@presign/schema/tables';
import { findSealed, type SealedCredential } from '../grant/policy.ts';
import { type FlatHeaders, headerOf, withHeader, withoutHeaders } from '../http/flat-headers.ts';
import { type Ended, forward, HEADERS_TIMEOUT_MS } from '../http/forward.ts';
import { cleanQuery, requestHeaders } from '../http/headers.ts';
import type { Body } from '../http/leaving.ts';
import { leaving } from '../http/leaving.ts';
import { type Admitted, outage } from '../limits/admit.ts';
import type { Answer } from './answer.ts';
import type { Call, LlmDeps } from './call.ts';
import { READABLE_CODINGS } from './meter.ts';

/** How sending a call ended; all but `Ended` ended here, `failed` by a fault of ours. */
export type Sent =
  | Ended
  | { readonly is: 'unavailable' }
  | { readonly is: 'unsealable' }
  | { readonly is: 'failed' };

/** Sends a counted call with the real credential and passes the answer on. Never throws: it must be settled. */
export async function send(deps: LlmDeps, call: Call, admitted: Admitted, answer: Answer): Promise<Sent> {
  try {
    return await sendWithCredential(deps, call, admitted, answer);
  } catch (error) {
    // Only its name: a message may quote what must stay secret.
    deps.log.error({ request_id: call.requestId, error: (error as Error).name }, 'a call could not be sent');
    return { is: 'failed' };
  }
}

async function sendWithCredential(
  deps: LlmDeps,
  call: Call,
  admitted: Admitted,
  answer: Answer,
): Promise<Sent> {
  const { incoming, grant, target, policy, plan } = call;
  const found = await findSealed(deps, policy.ref, admitted.credentialVersion).catch((error: unknown) => {
    outage(deps, call.requestId, error);
    return 'unavailable' as const;
  });
  // Gone since the call was admitted: Redis lost it, or it was revoked, as the holder hears when asking again.
  if (found === undefined || found === 'unavailable') return { is: 'unavailable' };
  const secret = unsealCredential(deps, call, found);
  if (secret === undefined) return { is: 'unsealable' };
  const body = plan.bodyFor(admitted.tokens);
  const credential = credentialOf(grant.provider, target.path);
  const given = requestHeaders(incoming.rawHeaders, credential, secret);
  // In another charset or kind of form the provider would read another body than was checked.
  const typed = plan.rewritten ? asJson(given) : given;
  const leaves = leaving(body, call.held.giveBack);
  const upstream = {
    origin: grant.origin,
    path: `${grant.basePath}${target.path}${cleanQuery(target.query, plan.spend && PARTIAL_ANSWER_QUERY_KEYS)}`,
    method: grant.method,
    headers: sized(meteredHeaders(call, typed), body, leaves),
    body: leaves,
  };
  const revocation = { cut: () => {}, isCut: false };
  const unwatch = deps.revocations.watch(policy.ref, () => {
    revocation.isCut = true;
    revocation.cut();
  });
  const totalMs = deps.upstreamTimeoutMs;
  const headersMs = Math.min(HEADERS_TIMEOUT_MS, totalMs);
  const bounds = { headersMs, totalMs, whenHolderLeaves: 'read on' } as const;
  return forward(deps.dispatcher, upstream, answer, bounds, revocation).finally(unwatch);
}

/** A body that was decoded and written anew. */
const asJson = (headers: FlatHeaders): FlatHeaders =>
  withHeader(withoutHeaders(headers, ['content-encoding']), 'content-type', 'application/json');

/** undici writes the length of a body in one piece itself. */
function sized(headers: FlatHeaders, body: Body, leaves: Body): FlatHeaders {
  if (!(body instanceof Buffer)) return headers;
  const sizeless = withoutHeaders(headers, ['content-length']);
  return leaves === body ? sizeless : [...sizeless, 'content-length', String(body.length)];
}

/** What an answer must be, to be read here: at the standard price, and in a coding that can be decoded. */
function meteredHeaders({ plan, incoming }: Call, headers: FlatHeaders): FlatHeaders {
  const { spend, hold, streams } = plan;
  if (!spend) return headers;
  const accepted = String(incoming.headers['accept-encoding'] ?? '').split(',');
  const readable = accepted.map((each) => each.trim()).filter((each) => READABLE_CODINGS.has(codingOf(each)));
  const coding = streams || readable.length === 0 ? 'identity' : readable.join(', ');
  const whole = withoutHeaders(headers, PARTIAL_ANSWER_HEADERS);
  const priced = hold ? withoutPriced(spend, whole) : whole;
  return withHeader(priced, 'accept-encoding', coding);
}

/** `gzip;q=0.5` → `gzip` (RFC 9110 §12.5.3). */
const codingOf = (accepted: string) => (accepted.split(';', 1)[0] ?? '').trim().toLowerCase();

/** Drops what would change the price, but for values that are known to change none. */
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

function unsealCredential(deps: LlmDeps, { policy }: Call, { sealed }: SealedCredential): string | undefined {
  const { accountId, ref } = policy;
  try {
    return unseal(deps.encryptionKeys, sealed, credentialContext(accountId, ref.credentialId));
  } catch (error) {
    const named = { credential: ref.credentialId, error: (error as Error).name };
    deps.log.error(named, 'a credential could not be opened');
    return undefined;
  }
}
