import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refusal } from '@presign/schema';
import type { ServeCall } from '../call-deps.ts';
import { CallReport } from '../call-report.ts';
import { loadPolicyFor } from '../grant/load-policy.ts';
import { compileTools } from '../grant/tool-rules.ts';
import type { McpGrant, VerifiedGrant } from '../grant/verify.ts';
import { mayBeLarge } from '../http/body.ts';
import { isCut } from '../http/cut.ts';
import { isDead } from '../http/refuse.ts';
import { type Admitted, chargeCall, type Passed } from '../limits/admit.ts';
import { leaveCall } from '../limits/settle.ts';
import { surelyUnsent } from '../limits/unsent.ts';
import { arriveInTurns, refusalTurn } from '../share/arrival.ts';
import type { Reservation } from '../share/body-memory.ts';
import { discardRest } from '../share/discard.ts';
import { checkHost } from '../share/hosts.ts';
import { checkQuota, takeUnsent } from '../share/read-quota.ts';
import { McpAnswer } from './answer/answer.ts';
import {
  announceRequests,
  cancelOnStream,
  endOnStream,
  isLegacy,
  LegacyStream,
  refuseOnStream,
} from './answer/legacy-sse.ts';
import { ChargeRefund } from './answer/refund.ts';
import { mcpRefusalAnswer, withBatchFigures } from './answer/refuse.ts';
import { isKeptBack, redirects } from './answer/statuses.ts';
import { LIST_UNREAD } from './answer/tool-list.ts';
import { transportRefusal } from './answer/transport.ts';
import type { Endpoint } from './ids/endpoint.ts';
import { endOf, noteEnd } from './note-end.ts';
import { asCall } from './request/as-call.ts';
import { freeRound, identifyLate, readLate } from './request/late.ts';
import type { McpDeps } from './request/mcp-deps.ts';
import { listens, type Messages } from './request/messages.ts';
import { callsOf, NOTHING, priceCalls } from './request/price.ts';
import { mcpRecord, priceLines, toolOf } from './request/record.ts';
import { identify, type McpCall, readPost } from './request/request.ts';
import { scanIds } from './request/scan-ids.ts';
import { LONGEST_MS, type McpSent, nothingRan, sendMcp, upstreamOf } from './send.ts';

/** Comparing a name with all names of the URL and the operator takes less than 0.2 ms. A refusal is charged for it, too. */
const NAME_WORK = 3_000;

/** The part of a refused request that was read, so that the refusal reaches the waiting client. */
type Refused = {
  readonly refusal: Refusal;
  readonly grant?: McpGrant | undefined;
  readonly signed?: VerifiedGrant | undefined;
  readonly messages?: Messages | undefined;
  readonly endpoint?: Endpoint | undefined;
  /** Its body was read, and cannot be read again. */
  readonly isRead?: true;
};

/**
 * `POST, GET, DELETE /mcp/mcp?url=…&token=…`: identify → read → price → charge → forward → refund what did not run. It
 * serves Streamable HTTP and the older HTTP+SSE. The gateway keeps no state of a session, so any gateway may serve it.
 */
export function mcpCall(deps: McpDeps): ServeCall {
  return async (incoming, outgoing, requestId) => {
    const report = new CallReport('mcp', requestId, incoming);
    report.provider = 'mcp';
    const bodyMemory = deps.bodyMemory.newReservation();
    let refused: Refused | undefined = { refusal: { code: 'internal_error' } };
    let answer: Response | undefined;
    try {
      try {
        refused = await serve(deps, report, incoming, outgoing, bodyMemory);
      } finally {
        bodyMemory.release();
      }
      // A holder who has disconnected, or has part of an answer, gets no refusal.
      if (!refused || outgoing.headersSent || outgoing.destroyed) return undefined;
      answer = await refuse(deps, { incoming, outgoing }, refused, requestId, bodyMemory.maxBodyBytes);
    } finally {
      deps.report(report, refused?.refusal, outgoing.headersSent ? outgoing.statusCode : answer?.status);
    }
    await refusalTurn(incoming);
    discardRest(incoming);
    return answer;
  };
}

type Connection = Pick<McpCall, 'incoming' | 'outgoing'>;

/** Answers a refused request, on the stream where its client waits for an answer if there is one. */
async function refuse(
  deps: McpDeps,
  { incoming, outgoing }: Connection,
  { refusal, grant, endpoint, ...read }: Refused,
  requestId: string,
  maxBodyBytes: number,
): Promise<Response> {
  const { method } = incoming;
  const isUnread = method === 'POST' && isDead(refusal) && read.messages === undefined && !read.isRead;
  const messages = isUnread ? await scanIds(incoming, maxBodyBytes) : read.messages;
  if (grant && endpoint && (await refuseOnStream(deps, { requestId, grant, endpoint, messages }, refusal)))
    return new Response(null, { status: 202 });
  const transport = grant && deps.memory.policies.get(grant.id)?.server?.transport;
  const refused = { refusal, method, messages, isLegacy: isLegacy(incoming, transport) };
  // Clients of the older transport show no body, but some show the reason phrase (RFC 9112 §4).
  if (refusal.param === 'transport' && refusal.message) outgoing.statusMessage = refusal.message;
  return mcpRefusalAnswer(refused, requestId);
}

/** Serves one request. Returns a refusal only while nothing has been written. */
async function serve(
  deps: McpDeps,
  report: CallReport,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  bodyMemory: Reservation,
): Promise<Refused | undefined> {
  const beganMs = deps.now();
  const first = identify(deps, incoming);
  const late = 'refusal' in first ? identifyLate(deps, first.grant, incoming) : undefined;
  const identified = late ?? first;
  report.grant = 'refusal' in identified ? identified.signed : identified.grant;
  if (mayBeLarge(incoming)) arriveInTurns(incoming, report.grant?.id);
  const spent = checkQuota(deps.readQuota, report.grant);
  if (spent) return { ...identified, refusal: spent };
  if ('refusal' in identified) return identified;
  const { grant, method, endpoint } = identified;
  const read = await (late
    ? readLate(deps, late, incoming, bodyMemory)
    : method === 'POST'
      ? readPost(deps, report, grant, incoming, bodyMemory)
      : NO_MESSAGES);
  if ('refusal' in read) return { ...read, grant, endpoint };
  const { messages } = read;
  report.messages = messages?.all.length;
  report.tool = toolOf(messages?.all ?? []);
  const refused = (refusal: Refusal): Refused => ({ refusal, grant, messages, endpoint });

  const found = await loadPolicyFor(deps, report, incoming, grant);
  if ('refusal' in found) return refused(found.refusal);
  const { policy } = found;
  const { server } = policy;
  if (!server) return refused({ code: 'token_invalid' });
  const rules = deps.memory.tools.of(grant.id, () => compileTools(server));
  const priced = priceCalls(messages?.all ?? [], rules, deps.mcpPrices);
  if ('refusal' in priced) {
    deps.readQuota.take(grant, NAME_WORK * (messages?.all.length ?? 1));
    return refused(priced.refusal);
  }
  const away = checkHost(deps.hosts, upstreamOf({ endpoint, server }).origin);
  if (away) return refused(away);
  const work = read.rounds?.before ? 0 : priced.charged.length;
  // A subscription stays open without a `concurrent_calls` place, even after the calls of its batch.
  const isFree = work === 0 || messages?.all.some(listens) === true;
  const begun = deps.freeWork.begin(grant.id, (messages?.all.length ?? 1) - work, isFree);
  if ('refusal' in begun) return refused(begun.refusal);
  const free = await freeRound(deps, report.requestId, grant, {
    rounds: read.rounds,
    isLate: late !== undefined,
  });
  if ('refusal' in free) {
    begun.end();
    return refused(free.refusal);
  }
  const { round } = free;
  const charged = round ? [] : priced.charged;
  const own = { report, incoming, outgoing, bodyMemory, beganMs, policy, server, round, charged, begun };
  const call = asCall(identified, read, own);
  const failed = await chargeAndRun(deps, call).finally(begun.end);
  return failed && refused(failed);
}

async function chargeAndRun(deps: McpDeps, call: McpCall): Promise<Refusal | undefined> {
  const { requestId, grant, policy, messages, charged, chargeId } = call;
  const refund = new ChargeRefund(deps, call);
  const counts = callsOf(messages, charged);
  const calls = counts.length;
  // A subscription counts as the stream that it opens.
  const places = calls - counts.filter(listens).length;
  const record = mcpRecord(call, { lin: priceLines(charged) });
  const ask = { chargeId, ...refund.requests.all, calls, places, leaseMs: deps.leaseMs, record };
  const askedAt = performance.now();
  const counted = await chargeCall(deps, requestId, grant, policy, ask);
  call.report.admitMs += performance.now() - askedAt;
  if ('refusal' in counted) {
    await call.round?.giveBack();
    return withBatchFigures(counted.refusal, ask.uses);
  }
  const drawn = counted.policy === policy ? call : { ...call, policy: counted.policy };
  refund.belongsTo(drawn);
  const running =
    counted.admitted.places > 0
      ? runPlaced(deps, drawn, counted, refund)
      : run(deps, drawn, counted.admitted, refund);
  deps.underWay.track(running);
  return running;
}

/**
 * Runs a charged call under `concurrent_calls`. Its places become free when nothing waits for its answers or when it has ended, because
 * servers may leave a stream open.
 */
async function runPlaced(deps: McpDeps, call: McpCall, counted: Passed, refund: ChargeRefund) {
  const { grant, policy, chargeId, unanswered } = call;
  const { partition } = grant;
  deps.leases.add({ partition, holdId: chargeId, microusd: 0, longestMs: LONGEST_MS });
  let hasLeft = false;
  const leave = () => {
    if (!hasLeft) deps.underWay.track(leaveCall(deps, policy.ref, chargeId));
    hasLeft = true;
  };
  // A charge can still be refunded for a few minutes after its places are freed.
  const refundFirst = async () => {
    await refund.giveUnrun();
    leave();
  };
  void unanswered.whenNone().then(refundFirst);
  try {
    return await run(deps, { ...call, placedMs: counted.askedMs }, counted.admitted, refund);
  } finally {
    leave();
  }
}

const NO_MESSAGES = { messages: undefined, body: { bytes: null }, taskId: undefined, rounds: undefined };

/** Sends a charged call, passes its answer on, and refunds what did not run. */
async function run(
  deps: McpDeps,
  call: McpCall,
  admitted: Admitted,
  refund: ChargeRefund,
): Promise<Refusal | undefined> {
  const { requestId, incoming, grant, server, method, endpoint, messages, resumes } = call;
  const post = endpoint && { requestId, grant, endpoint, messages };
  if (post) await announceRequests(deps, post);
  const stream = { requestId, grant, serverUrl: server.url, target: incoming.url ?? '' };
  const legacy = method === 'GET' ? new LegacyStream(deps, stream, resumes) : undefined;
  const answerMemory = deps.bodyMemory.newReservation();
  answerMemory.belongsTo(grant.id);
  const shared = { encryptionKeys: deps.encryptionKeys, turn: deps.turns.of(grant.id) };
  const isTaken = () => cancelRequests(deps, call);
  const answer = new McpAnswer({ call, admitted, refund, legacy, isTaken, answerMemory, ...shared });
  const ended = endpoint
    ? undefined
    : deps.openRequests.add(senderOf(call), call.unanswered, call.placedMs !== undefined);
  cancelOwn(call);
  const sent = await sendMcp(deps, call, admitted, answer);
  ended?.();
  legacy?.close();
  if (nothingRan(sent)) await giveAllBack(deps, call, refund, sent);
  // Errors in the answer before it broke off count.
  else if (sent.is === 'broken') await refund.giveUnrun();
  call.report.end = endOf(call, sent, nothingRan(sent) ? NOTHING : refund.requests.kept);
  const unread =
    sent.is === 'complete' && !isKeptBack(sent.status) ? await answer.finish(BROKEN_OFF) : undefined;
  if (sent.is === 'broken') await answer.abort(UNANSWERED[sent.why], isCut(sent.why));
  // Until here the answer is stored. From here on it waits for its holder.
  answer.whenClosed(answerMemory.release);
  if (post && sent.is === 'complete' && sent.status >= 400) await endOnStream(deps, post, sent.status);
  const refusal = unread ?? endRefusal(call, sent);
  noteEnd(deps, call, sent, refusal);
  return refusal;
}

/** A client repeats its session id as received, even if the id is the gateway's own. */
const senderOf = ({ grant, incoming }: McpCall) => ({
  grantId: grant.id,
  session: incoming.headers['mcp-session-id']?.toString(),
});

/** The requests that a POST cancels. */
const cancelledBy = ({ messages }: McpCall) =>
  (messages?.all ?? []).flatMap(({ cancels }) => (cancels === undefined ? [] : [cancels]));

/**
 * Records the requests that a batch both makes and cancels. The server gets both or neither. It may not begin a JSON answer before each
 * request is answered, and a cancelled request never is.
 */
function cancelOwn(call: McpCall): void {
  if (!call.endpoint) for (const id of cancelledBy(call)) call.unanswered.waitsNoMore(id, 'cancelled');
}

/** Records the requests that a POST cancels, once the server has the POST. Most servers leave them without an answer. */
function cancelRequests(deps: McpDeps, call: McpCall): void {
  const { requestId, grant, endpoint, messages, unanswered } = call;
  const ids = cancelledBy(call);
  if (ids.length === 0) return;
  if (endpoint) return void cancelOnStream(deps, { requestId, grant, endpoint, messages }, ids);
  for (const id of ids)
    if (!unanswered.waitsNoMore(id, 'cancelled')) deps.openRequests.cancel(senderOf(call), id);
}

/** Refunds a POST in full if it certainly did not run. */
async function giveAllBack(deps: McpDeps, call: McpCall, refund: ChargeRefund, sent: McpSent): Promise<void> {
  const wasSent = !surelyUnsent(sent);
  if (!wasSent) takeUnsent(deps.readQuota, call.grant);
  await refund.give(refund.requests.all, { wasSent, ...('status' in sent && { status: sent.status }) });
}

/** The refusal of a call that ended without an answer for the holder. */
export function endRefusal(call: McpCall, sent: McpSent): Refusal | undefined {
  switch (sent.is) {
    case 'complete':
      return redirects(sent.status) ? REDIRECTED : transportRefusal(call, sent.status);
    case 'broken':
      return UNANSWERED[sent.why];
    case 'unauthorized':
      return sent.refusal;
    case 'unavailable':
      return { code: 'limits_unavailable', retryAfterSeconds: 1 };
    case 'failed':
    case 'unsealable':
      return { code: 'internal_error' };
    case 'unsent':
      return UNANSWERED[sent.cut ?? 'unsent'];
    case 'unanswered':
      return UNANSWERED[sent.why];
  }
}

const REDIRECTED: Refusal = {
  code: 'upstream_unreachable',
  message:
    'The MCP server redirects to another address, which must not get its credential. Issue a URL for that address.',
};

const BROKEN_OFF: Refusal = {
  code: 'upstream_unreachable',
  message:
    'The MCP server closed the connection before its answer was complete. The call may have run, so its charge stands.',
};

const UNANSWERED = {
  unsent: { code: 'upstream_unreachable', message: 'The MCP server could not be reached. Try again later.' },
  timeout: {
    code: 'upstream_timeout',
    message: 'The MCP server did not answer in time. The call may have run, so its charge stands.',
  },
  left: BROKEN_OFF,
  failure: BROKEN_OFF,
  revoked: { code: 'grant_revoked' },
  suspended: { code: 'account_suspended' },
  expired: { code: 'token_expired' },
  unleased: { code: 'limits_unavailable', retryAfterSeconds: 1 },
  unread: LIST_UNREAD,
  over: { code: 'upstream_unreachable', message: 'The MCP server did not answer a call that was cancelled.' },
  closing: { code: 'overloaded', message: 'This gateway is closing. Try again.', retryAfterSeconds: 1 },
} as const satisfies Readonly<Record<string, Refusal>>;
