import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { checkGrant } from '@presign/limits';
import { answerHeadersOf, errorShapeOf, socketOf, spendOf } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { CallReport } from '../call-report.ts';
import { loadSecret } from '../grant/credential.ts';
import { loadPolicyFor } from '../grant/load-policy.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant, Verified } from '../grant/verify.ts';
import { type FlatHeaders, holdersHeaders } from '../http/headers.ts';
import { NOT_SHOWN, Secrets } from '../http/hide-secrets.ts';
import { refusalAnswer, UNAVAILABLE } from '../http/refuse.ts';
import { chargeCall, count, newHoldId } from '../limits/admit.ts';
import type { Guarded } from '../limits/leases.ts';
import { leaveCall } from '../limits/settle.ts';
import { authorize } from '../llm/authorize.ts';
import type { LlmDeps } from '../llm/llm-deps.ts';
import { type CallUrl, match, splitUrl, type Target, verifyCall } from '../llm/match.ts';
import { hostOf } from '../llm/send.ts';
import { checkHost } from '../share/hosts.ts';
import { checkQuota, takeUnsent } from '../share/read-quota.ts';
import { answerRaw } from './answer-raw.ts';
import { Connection } from './connection.ts';
import { newId } from './dialects/event.ts';
import { acceptHolder, malformedHandshake, offeredProtocols, openClient } from './framing.ts';
import { type Opened, openUpstream } from './open-upstream.ts';
import { type Protocol, protocolOf } from './protocol.ts';
import { tellPage } from './tell-page.ts';
import { planTurn, type SocketOf } from './turn.ts';

/** Serves a handshake on the URL of a call, and the socket until its end. */
export type ServeSocket = (incoming: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>;

/** A handshake, and its parsed URL. */
type Asking = {
  readonly requestId: string;
  readonly report: CallReport;
  readonly incoming: IncomingMessage;
  readonly url: CallUrl;
  readonly verified: Verified<LlmGrant>;
  /** The connection is already a socket, so it gets no HTTP answer. */
  isAccepted: boolean;
};

/** A handshake that may be forwarded. */
type Allowed = {
  readonly grant: LlmGrant;
  readonly protocol: Protocol;
  readonly policy: Policy;
  readonly credentialVersion: number;
  /** Frees the connection's place and memory. */
  readonly leave: () => void;
  /** Undefined: it takes no place. */
  readonly place: Guarded | undefined;
};

/** A handshake that was refused: by the gateway, or by an upstream that answered it. */
type Refused = { readonly refusal: Refusal; readonly answer?: Response };

/** `GET` with `Upgrade: websocket` on the URL of a call: verify → match → load the policy → check the limits → take a place → open. */
export function socketCall(deps: LlmDeps): ServeSocket {
  return async (incoming, socket, head) => {
    const requestId = newId();
    const report = new CallReport('socket', requestId, incoming);
    const url = splitUrl(incoming.url ?? '');
    const verified = verifyCall(deps.verify, url, incoming.headers);
    report.grant = 'grant' in verified ? verified.grant : verified.signed;
    const asking = { requestId, report, incoming, url, verified, isAccepted: false };
    // Only the error's name is logged: a message may quote a secret.
    const failed = (error: Error) =>
      deps.log.error({ request_id: requestId, error: error.name }, 'a socket could not be served');
    const served = await serve(deps, asking, socket, head).catch((error: Error): Refused => {
      failed(error);
      return { refusal: { code: 'internal_error' } };
    });
    if (served === 'gone') return deps.report(report, undefined, 101);
    if (!('refusal' in served)) return keep(deps, report, served);
    deps.report(report, served.refusal, served.answer?.status);
    if (asking.isAccepted) return void socket.destroy();
    const { refusal } = served;
    const grant = 'grant' in verified ? verified.grant : verified.expired;
    const isPlain = grant && malformedHandshake(incoming) === undefined;
    if (isPlain && tellPage(deps, { requestId, incoming, socket, head, grant, path: url.path }, refusal))
      return;
    const shape = errorShapeOf(grant?.provider, url.path);
    const answer = served.answer ?? refusalAnswer(refusal, requestId, shape);
    await answerRaw(incoming, socket, answer).catch((error: Error) => {
      failed(error);
      socket.destroy();
    });
  };
}

/** A socket that runs until its end. */
type Kept = { readonly connection: Connection; readonly allowed: Allowed };

/** @returns 'gone' if the holder has disconnected meanwhile */
async function serve(
  deps: LlmDeps,
  asking: Asking,
  socket: Duplex,
  head: Buffer,
): Promise<Kept | Refused | 'gone'> {
  const allowed = await judge(deps, asking);
  if ('refusal' in allowed) return allowed;
  let connection: Connection | undefined;
  try {
    const opened = await open(deps, asking, allowed);
    if ('refusal' in opened) return opened;
    connection = connect(deps, asking, allowed, opened, socket, head);
    return connection ? { connection, allowed } : 'gone';
  } finally {
    if (!connection) allowed.leave();
  }
}

/** Accepts the holder's side. */
function connect(
  deps: LlmDeps,
  asking: Asking,
  { grant, protocol, policy, credentialVersion }: Allowed,
  opened: OpenSocket,
  socket: Duplex,
  head: Buffer,
): Connection | undefined {
  const { target, dialect } = protocol;
  const { requestId, incoming } = asking;
  const { bounds } = deps.sockets;
  const { secrets } = opened;
  const shown = passed(opened.headers, grant).map((each) => secrets.hide(each));
  const headers = [...shown, `x-presign-request-id: ${requestId}`];
  const accepting = { incoming, socket, head, headers, protocol: opened.protocol };
  asking.isAccepted = true;
  const holder = socket.destroyed ? undefined : acceptHolder(accepting, bounds.holderMessageBytes);
  if (!holder) {
    opened.socket.destroy();
    return undefined;
  }
  const upstream = openClient(opened.socket, bounds.upstreamMessageBytes);
  // The request itself is not kept, because its URL contains the token.
  const asked = { headers: incoming.headers, socket: incoming.socket };
  const of = { connectionId: requestId, incoming: asked, grant, target, credentialVersion };
  return new Connection(deps, { requestId, of, policy, secrets, dialect, holder, upstream });
}

/** Guards a socket, and reports it at its end. An idle socket keeps no waiting function alive. */
function keep(deps: LlmDeps, report: CallReport, { connection, allowed: { place, leave } }: Kept): void {
  const openedAt = performance.now();
  const remove = deps.sockets.add(connection);
  const unguard = place && deps.leases.guard(place, () => connection.cut('unleased'));
  const over = connection.over.then(() => {
    remove();
    unguard?.();
    leave();
    // The time of an open socket counts as its holder's time, like the time of a body.
    report.bodyMs = performance.now() - openedAt;
    report.turns = connection.turns;
    report.closed = connection.closing.closed;
    deps.report(report, undefined, 101);
  });
  deps.underWay.track(over);
}

/** Judges a handshake like a call on the path with the method of such calls. */
async function judge(
  deps: LlmDeps,
  { requestId, report, incoming, url, verified }: Asking,
): Promise<Allowed | Refused> {
  const spent = checkQuota(deps.readQuota, report.grant);
  if (spent) return { refusal: spent };
  if ('refusal' in verified) return { refusal: verified.refusal };
  const { grant } = verified;
  // A handshake costs no use, but takes two scripts and a connection to the provider.
  takeUnsent(deps.readQuota, grant);
  report.provider = grant.provider.id;
  const matched = match(grant, 'POST', url.path, url.query);
  if ('refusal' in matched) return matched;
  const { target } = matched;
  if (!grant.hasSockets) return { refusal: { code: 'sockets_not_allowed' } };
  if (!socketOf(grant.provider, target.path)) return { refusal: NO_SOCKET };
  const malformed = malformedHandshake(incoming);
  if (malformed) return { refusal: malformed };
  const found = await loadPolicyFor(deps, report, incoming, grant);
  if ('refusal' in found) return found;
  const { policy } = found;
  const protocol = protocolOf(deps, grant, target, policy);
  if ('refusal' in protocol) return protocol;
  const impossible = await impossibleSession(
    deps,
    { grant, target: protocol.target, incoming },
    protocol,
    policy,
  );
  if (impossible) return { refusal: impossible };
  const away = checkHost(deps.hosts, hostOf(grant, target.path, policy.ref.credentialId));
  if (away) return { refusal: away };
  const entered = deps.sockets.enter({ grantId: grant.id, accountId: policy.accountId });
  if ('refusal' in entered) return entered;
  const placed = await takePlace(deps, requestId, grant, policy);
  if ('refusal' in placed) {
    entered.leave();
    return placed;
  }
  const leave = () => {
    entered.leave();
    placed.leave();
  };
  return { grant, protocol, ...placed, leave };
}

/** Refuses a session that could have no turn under the limits of its URL: one of a model without a price, for example. */
async function impossibleSession(
  deps: LlmDeps,
  of: Pick<SocketOf, 'grant' | 'target' | 'incoming'>,
  { dialect }: Protocol,
  policy: Policy,
): Promise<Refusal | undefined> {
  if (!dialect.least || !(policy.costLimited || policy.tokenLimited)) return undefined;
  const planned = await planTurn(deps, of, { create: dialect.least(), beganMs: deps.now() }, policy);
  return 'refusal' in planned ? planned.refusal : undefined;
}

const NO_SOCKET: Refusal = {
  code: 'sockets_not_allowed',
  message: 'This path has no socket here. Send the call as a POST.',
};

/** Refuses a URL that no turn could use now. Under `concurrent_calls`, the connection takes a place, and its turns take none. */
async function takePlace(
  deps: LlmDeps,
  requestId: string,
  grant: LlmGrant,
  policy: Policy,
): Promise<Pick<Allowed, 'policy' | 'credentialVersion' | 'leave' | 'place'> | Refused> {
  const ask = { uses: 1, spends: policy.costLimited } as const;
  const checked = await count(deps, requestId, grant, policy, (ref) => checkGrant(deps.redis, ref, ask));
  if ('refusal' in checked) return checked;
  const chargeId = newHoldId();
  const { leaseMs } = deps;
  const ofPlace = { chargeId, uses: 0, costMicrousd: 0, calls: 0, places: 1, leaseMs, record: '{}' };
  const counted = await chargeCall(deps, requestId, grant, checked.policy, ofPlace);
  if ('refusal' in counted) return counted;
  const { admitted, askedMs, policy: drawn } = counted;
  const { credentialVersion, places } = admitted;
  if (places === 0) return { policy: drawn, credentialVersion, leave: () => {}, place: undefined };
  // Its last turn may begin at the end of its time.
  const longestMs = 2 * deps.upstreamTimeoutMs;
  deps.leases.add({ partition: grant.partition, holdId: chargeId, microusd: 0, longestMs });
  const leave = () => deps.underWay.track(leaveCall(deps, drawn.ref, chargeId));
  const place = { partition: grant.partition, holdId: chargeId, askedMs };
  return { policy: drawn, credentialVersion, leave, place };
}

type OpenSocket = Extract<Opened, { is: 'open' }> & { readonly secrets: Secrets };

/** Opens the upstream's socket with the real credential. */
async function open(
  deps: LlmDeps,
  { requestId, incoming }: Asking,
  { grant, protocol, policy, credentialVersion }: Allowed,
): Promise<OpenSocket | Refused> {
  const loaded = await loadSecret(deps, requestId, policy, credentialVersion);
  if (loaded.is !== 'loaded')
    return { refusal: loaded.is === 'unavailable' ? UNAVAILABLE : { code: 'internal_error' } };
  const { target } = protocol;
  const unauthorized = {
    origin: grant.origin,
    path: `${grant.basePath}${target.path}${protocol.query}`,
    method: 'GET',
    headers: headersToSend(incoming, grant, target, policy),
  };
  const key = { secret: loaded.secret, version: credentialVersion };
  const authorized = await authorize(deps, { grant, target, policy }, key, unauthorized, null);
  if ('refusal' in authorized) return authorized;
  const secrets = new Secrets(authorized.secrets);
  const host = hostOf(grant, target.path, policy.ref.credentialId);
  const protocols = offeredProtocols(incoming);
  const opened = await openUpstream(deps, { ...unauthorized, ...authorized.changes, protocols, host });
  if (opened.is === 'open') return { ...opened, secrets };
  if (opened.is === 'failed') return { refusal: opened.blocked ? BLOCKED : { code: 'upstream_unreachable' } };
  if (opened.status === 401) authorized.refused?.();
  const message = `The provider refused the socket with status ${opened.status}.`;
  return {
    refusal: { code: 'upstream_unreachable', message, details: { status: opened.status } },
    answer: answerOf(opened, secrets, grant, requestId),
  };
}

const BLOCKED: Refusal = {
  code: 'upstream_unreachable',
  message: "The provider's address is not public, and this gateway calls only public addresses.",
};

/** The holder's headers, without headers of the body and without headers of the handshake, which the gateway sets itself. */
function headersToSend(
  { rawHeaders }: IncomingMessage,
  { provider }: LlmGrant,
  { path }: Target,
  { costLimited, tokenLimited }: Policy,
): FlatHeaders {
  const priced = costLimited || tokenLimited ? (spendOf(provider, path)?.pricedHeaders ?? []) : [];
  return holdersHeaders(rawHeaders, (name) => OF_BODIES.has(name) || priced.includes(name));
}

const OF_BODIES: ReadonlySet<string> = new Set(['content-length', 'content-type', 'content-encoding']);

/** The header lines of an upstream that a holder gets. */
function passed(
  headers: Opened extends never ? never : Extract<Opened, { is: 'open' }>['headers'],
  { provider }: LlmGrant,
) {
  const passes = answerHeadersOf(provider);
  return Object.entries(headers).flatMap(([name, value]) =>
    value !== undefined && passes(name) ? [value].flat().map((each) => `${name}: ${each}`) : [],
  );
}

/** The answer of a provider that refused the handshake, filtered like answers to calls. */
function answerOf(
  { status, headers, body }: Extract<Opened, { is: 'answered' }>,
  secrets: Secrets,
  grant: LlmGrant,
  requestId: string,
): Response {
  const isCoded = headers['content-encoding'] !== undefined;
  const answered = new Headers();
  for (const line of passed(headers, grant)) {
    const at = line.indexOf(': ');
    const name = line.slice(0, at);
    if (name !== 'content-length' && name !== 'content-encoding')
      answered.append(name, secrets.hide(line.slice(at + 2)));
  }
  answered.set('x-presign-request-id', requestId);
  // Without headers of its own the answer would begin with a content type, next to which the provider's would be a second one.
  return new Response(isCoded ? NOT_SHOWN : secrets.mask(body), {
    status: status < 400 || status > 599 ? 502 : status,
    headers: answered,
  });
}
