import type { IncomingMessage } from 'node:http';
import { PARTIAL_ANSWER_HEADERS, PARTIAL_ANSWER_QUERY_KEYS } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { loadSecret } from '../grant/credential.ts';
import type { LlmGrant } from '../grant/verify.ts';
import { type Body, bodyToSend, sizeOf } from '../http/body.ts';
import { Cutter } from '../http/cut.ts';
import { READABLE_CODINGS } from '../http/decoder.ts';
import { type Bounds, type Ended, forward, HEADERS_TIMEOUT_MS, type Receiver } from '../http/forward.ts';
import { cleanQuery, type FlatHeaders, holdersHeaders } from '../http/headers.ts';
import type { Passed } from '../limits/admit.ts';
import { llmOperation } from '../traces.ts';
import { authorize } from './authorize.ts';
import type { LlmDeps } from './llm-deps.ts';
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
  const { grant, target, policy, plan, holdId } = call;
  const loaded = await loadSecret(deps, call.requestId, policy, admitted.credentialVersion);
  if (loaded.is !== 'loaded') return loaded;
  // Only a spend limit lowers the bound.
  const bound = plan.hold ? Math.min(admitted.tokens, plan.askedTokens) : plan.askedTokens;
  const body = plan.bodyFor(bound);
  const sent = bodyToSend(body, call.bodyMemory.release);
  const traced = deps.traces?.toUpstream(
    call.report,
    llmOperation(target.path, grant.provider, call.report.model),
  );
  const headers = headersToSend(call, body, sent);
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
  const host = hostOf(grant, target.path, policy.ref.credentialId);
  const wait = deps.waits.begin(grant.provider.id);
  const { answered } = wait;
  const upstream = { ...unauthorized, ...authorized.changes, body: sent, host, answered };
  const cutter = new Cutter();
  const unwatch = deps.revocations.watch(policy.ref, cutter);
  const { partition } = grant;
  const unguard =
    admitted.places > 0
      ? deps.leases.guard({ partition, holdId, askedMs }, () => cutter.cut('unleased'))
      : undefined;
  const totalMs = deps.upstreamTimeoutMs;
  const headersMs = Math.min(HEADERS_TIMEOUT_MS, totalMs);
  const turn = deps.turns.of(grant.id);
  const bounds = { headersMs, totalMs, readsOn: () => answer.readsOn(), turn };
  try {
    const ended = await forward(deps, upstream, answer, bounds, cutter, call.report);
    if ('status' in ended && ended.status === 401) authorized.refused?.();
    return ended;
  } finally {
    wait.ended();
    unwatch();
    unguard?.();
  }
}

/**
 * Names the upstream of a call before its key is unsealed. The key of a cloud may name a region and thereby the host, so each credential
 * counts as a different host.
 */
export function hostOf({ provider, origin }: LlmGrant, path: string, credentialId: string): string {
  if (!provider.originIn) return origin;
  return `${provider.originIn({ region: undefined, path }) ?? origin} ${credentialId}`;
}

/** The holder's headers. Headers that depend on the sent body or on metering are the gateway's own. */
function headersToSend({ incoming, plan, isDecoded }: Call, body: Body, sent: Body): FlatHeaders {
  const { spend, rewritten, streams } = plan;
  const size = sizeOf(body);
  const priced = spend && givesBack(plan) ? (spend.pricedHeaders ?? []) : [];
  const headers = holdersHeaders(incoming.rawHeaders, (name) => {
    if (name === 'content-length') return size !== undefined;
    if (name === 'content-type') return rewritten;
    if (name === 'content-encoding') return rewritten || isDecoded;
    if (name === 'accept-encoding' || PARTIAL_ANSWER_HEADERS.includes(name)) return spend !== undefined;
    return priced.includes(name);
  });
  // undici states the length of a body in one piece.
  if (size !== undefined && !(sent instanceof Buffer)) headers.push('content-length', String(size));
  // With the holder's own charset or content type, the provider might read a different body than the checked one.
  if (rewritten) headers.push('content-type', 'application/json');
  if (spend) headers.push('accept-encoding', streams ? 'identity' : readableCodings(incoming));
  return headers;
}

/** Asks for an answer in a coding that the gateway can decode. */
function readableCodings({ headers }: IncomingMessage): string {
  const accepted = headers['accept-encoding'] ?? '';
  const readable = valuesIn(accepted).filter((each) => READABLE_CODINGS.has(codingOf(each)));
  return readable.length === 0 ? 'identity' : readable.join(', ');
}

/** `gzip;q=0.5` → `gzip` (RFC 9110 §12.5.3). */
const codingOf = (accepted: string) => (accepted.split(';', 1)[0] ?? '').trim().toLowerCase();

const valuesIn = (header: string | readonly string[] | undefined): string[] =>
  header
    ? String(header)
        .split(',')
        .map((value) => value.trim())
    : [];
