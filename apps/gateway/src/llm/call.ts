import type { IncomingMessage, ServerResponse } from 'node:http';
import { costsNothing, dialectOf, errorShapeOf, leadsOutside, socketOf } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { ServeCall } from '../call-deps.ts';
import { CallReport } from '../call-report.ts';
import { hasRules } from '../grant/call-rules.ts';
import { loadPolicyFor, withLimitsOfNow } from '../grant/load-policy.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant, Verified } from '../grant/verify.ts';
import { mayBeLarge } from '../http/body.ts';
import { isDead, refusalAnswer } from '../http/refuse.ts';
import { LIMITS_CHANGED, newHoldId } from '../limits/admit.ts';
import { precheck } from '../limits/precheck.ts';
import { arriveInTurns, refusalTurn } from '../share/arrival.ts';
import type { Reservation } from '../share/body-memory.ts';
import { answerAndClose, discardRest } from '../share/discard.ts';
import { checkHost } from '../share/hosts.ts';
import { checkQuota } from '../share/read-quota.ts';
import { Answer, answerPlan } from './answer.ts';
import { signsBody } from './authorize.ts';
import {
  type Arrived as ArrivedBody,
  MULTIPART,
  type Need,
  readBody,
  readsMuch,
  unservableHeader,
} from './body.ts';
import { checkPrice } from './disproved.ts';
import { endCall } from './end-call.ts';
import type { Unplannable } from './hold.ts';
import { costHeaders, endRefusal } from './judge-end.ts';
import type { LlmDeps } from './llm-deps.ts';
import { type CallUrl, match, splitUrl, type Target, verifyCall } from './match.ts';
import type { Call } from './plan.ts';
import { type Planned, planBody } from './plan-body.ts';
import { callRecord } from './record.ts';
import { hostOf, send } from './send.ts';
import { admitTightly, runningHold, type Tight } from './tight-hold.ts';

/**
 * `ANY /llm/t/<token>/<path>`, or `/llm/<path>` with the token in a header: verify → check the quota → match → precheck → plan → admit →
 * forward → meter → settle. It uses Node's own request and response, because a `Request`/`Response` pair with a body costs more than all
 * other work.
 */
export function llmCall(deps: LlmDeps): ServeCall {
  return async (incoming, outgoing, requestId) => {
    const report = new CallReport('llm', requestId, incoming);
    const bodyMemory = deps.bodyMemory.newReservation();
    const url = splitUrl(incoming.url ?? '');
    const verified = verifyCall(deps.verify, url, incoming.headers);
    report.grant = 'grant' in verified ? verified.grant : verified.signed;
    if (mayBeLarge(incoming)) arriveInTurns(incoming, report.grant?.id);
    let refusal: Refusal | undefined = { code: 'internal_error' };
    try {
      refusal = await serve(deps, { report, incoming, outgoing, url, verified }, bodyMemory);
    } finally {
      bodyMemory.release();
      deps.report(report, refusal);
    }
    // A holder who has disconnected, or has part of an answer, gets no refusal.
    if (!refusal || outgoing.headersSent || outgoing.destroyed) return undefined;
    const grant = 'grant' in verified ? verified.grant : verified.expired;
    const answer = refusalAnswer(
      refusal,
      requestId,
      errorShapeOf(grant?.provider, url.path, grant?.paths[0]),
    );
    await refusalTurn(incoming);
    if (isDead(refusal)) return answerAndClose(incoming, outgoing, answer);
    discardRest(incoming);
    return answer;
  };
}

/** A request and its parsed URL. */
type Arrived = {
  readonly report: CallReport;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly url: CallUrl;
  readonly verified: Verified<LlmGrant>;
};

/** Serves one call. Returns a refusal only while nothing has been written. */
async function serve(
  deps: LlmDeps,
  { report, incoming, outgoing, url, verified }: Arrived,
  bodyMemory: Reservation,
): Promise<Refusal | undefined> {
  const beganMs = deps.now();
  const spent = checkQuota(deps.readQuota, report.grant);
  if (spent) return spent;
  const unservable = unservableHeader(incoming);
  if (unservable) return unservable;
  if ('refusal' in verified) return verified.refusal;
  const { grant } = verified;
  const { requestId } = report;
  report.provider = grant.provider.id;
  report.knowledge = grant.provider.knowledge;
  const matched = match(grant, incoming.method ?? '', url.path, url.query);
  if ('refusal' in matched) return matched.refusal;
  const { target } = matched;
  if (leadsOutside(grant.provider, target.path))
    return socketOf(grant.provider, target.path) ? SOCKET_ALONE : OUTSIDE;
  const found = await loadPolicyFor(deps, report, incoming, grant);
  if ('refusal' in found) return found.refusal;
  const away = checkHost(deps.hosts, hostOf(grant, target.path, found.policy.ref.credentialId));
  if (away) return away;
  bodyMemory.belongsTo(grant.id);
  const ready = await prepare(deps, { report, incoming, grant, target, bodyMemory, beganMs }, found.policy);
  if ('refusal' in ready) {
    report.model = ready.model;
    report.unbounded = ready.unbounded;
    return ready.refusal;
  }
  const { planned, policy, arrived } = ready;
  const { plan } = planned;
  report.model = plan.pricing && plan.model;
  report.knowledge = plan.knowledge;
  const holdId = newHoldId();
  const record = callRecord({ requestId, policy, grant, plan, beganMs });
  const isDecoded = arrived.isDecoded === true;
  // biome-ignore format: one line
  const call: Call = { requestId, report, incoming, outgoing, grant, target, policy, plan, bodyMemory, holdId, record, isDecoded };
  const ask = { holdId, uses: 1, leaseMs: deps.leaseMs, record };
  const askedAt = performance.now();
  const tight = await admitTightly(deps, { requestId, grant, policy, ask }, planned);
  report.admitMs = performance.now() - askedAt;
  if ('refusal' in tight) return tight.refusal;
  const running = run(deps, tight.policy === policy ? call : { ...call, policy: tight.policy }, tight);
  deps.underWay.track(running);
  return running;
}

const OUTSIDE: Refusal = {
  code: 'path_not_allowed',
  message:
    'This path opens sessions that pass by no gateway, or hands out keys, so no limit of this URL would hold for them.',
};

const SOCKET_ALONE: Refusal = {
  code: 'path_not_allowed',
  message:
    'This path is opened as a socket alone: open it with ws:// or wss://, by a URL that was issued with "sockets": true.',
};

/** A call whose URL may be used. */
type Arriving = Pick<Arrived, 'report' | 'incoming'> & {
  readonly grant: LlmGrant;
  readonly target: Target;
  readonly bodyMemory: Reservation;
  readonly beganMs: number;
};

type Ready = { readonly planned: Planned; readonly policy: Policy; readonly arrived: ArrivedBody };
/** A refusal, with the body if it has arrived. */
type Unready = Unplannable & { readonly arrived?: ArrivedBody };

/** Reads a body, and plans its call. A removed limit refuses no call, because cached limits that refuse a call are loaded again. */
async function prepare(deps: LlmDeps, call: Arriving, known: Policy): Promise<Ready | Unready> {
  const { report, incoming, grant, target } = call;
  const much = readsMuch(incoming, needOf(grant, target, known));
  const early = await precheck(deps, report.requestId, { grant, policy: known, uses: 1, readsMuch: much });
  if (early) return { refusal: early };
  const first = await readAndPlan(deps, call, known);
  if (!('refusal' in first) || !(known.costLimited || known.tokenLimited)) return first;
  const policy = await withLimitsOfNow(deps, grant, known);
  if (!policy) return first;
  report.policy = policy;
  const canRepeat = first.refusal === MULTIPART || isWhole(first.arrived);
  return canRepeat ? readAndPlan(deps, call, policy, first.arrived) : { refusal: LIMITS_CHANGED };
}

/** The bytes of a large body have been moved to a worker. */
const isWhole = (arrived: ArrivedBody | undefined): boolean =>
  arrived?.raw === null || (arrived?.raw instanceof Buffer && arrived.raw.length > 0);

/** @param read a body that has arrived */
async function readAndPlan(
  deps: LlmDeps,
  { report, incoming, grant, target, bodyMemory, beganMs }: Arriving,
  policy: Policy,
  read?: ArrivedBody,
): Promise<Ready | Unready> {
  const need = needOf(grant, target, policy);
  const readAt = performance.now();
  const mostBytes = policy.conditions?.max_body_bytes;
  const body = read ? { arrived: read } : await readBody(incoming, need, bodyMemory, mostBytes);
  report.bodyMs = performance.now() - readAt;
  if ('refusal' in body) return body;
  const { arrived } = body;
  const asked = { grant, target, policy, need, arrived, headers: incoming.headers, now: beganMs };
  const planned = await planBody(deps, asked);
  if ('refusal' in planned) return { ...planned, arrived };
  const unpriced = checkPrice(deps, { grant, policy, plan: planned.plan });
  return unpriced ? { ...unpriced, arrived } : { planned, policy, arrived };
}

/** Runs an admitted call. It is counted already, so it is settled whatever happens. */
async function run(deps: LlmDeps, call: Call, tight: Tight): Promise<Refusal | undefined> {
  const { grant, holdId, outgoing } = call;
  const { partition } = grant;
  const microusd = tight.admitted.heldMicrousd;
  deps.leases.add({ partition, holdId, microusd, longestMs: deps.upstreamTimeoutMs });
  const memory = deps.bodyMemory.newReservation();
  memory.belongsTo(grant.id);
  const hold = runningHold(deps, call, tight);
  const reading = { onInput: hold.onInput, turn: deps.turns.of(grant.id) };
  const answer = new Answer(outgoing, answerPlan(call, tight.admitted, memory, reading));
  const sent = await send(deps, call, tight, answer);
  const metered = await answer.end();
  memory.release();
  const admitted = hold.admitted();
  const { charge, left } = await endCall(deps, call, tight, { sent, metered, admitted });
  if (sent.is === 'complete') answer.finish(metered, costHeaders(charge, admitted, left));
  if (sent.is === 'broken') answer.abort();
  const refusal = endRefusal(sent);
  const isLast = admitted.usesLeft === 0 && (charge.uses > 0 || left?.isKept === true);
  return refusal && isLast && refusal.code !== 'limits_unavailable'
    ? { ...refusal, shouldRetry: false }
    : refusal;
}

/** A body is read when a config, the allowed models, or a limit of money or tokens act on it, or when its usage can be metered. */
function needOf(grant: LlmGrant, { path }: Target, policy: Policy): Need {
  if (hasRules(policy)) return 'must';
  const isLimited = policy.costLimited || policy.tokenLimited;
  if (isLimited && !costsNothing(grant.provider, grant.method, path)) return 'must';
  if (signsBody(grant.provider)) return 'whole';
  return dialectOf(grant.provider, path)?.spend ? 'may' : 'none';
}
