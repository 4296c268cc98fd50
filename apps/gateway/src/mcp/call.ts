import type { IncomingMessage, ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Refusal } from '@presign/schema';
import type { Handler } from 'hono';
import type { GatewayEnv, McpDeps } from '../deps.ts';
import { loadPolicy } from '../grant/policy.ts';
import type { Reservation } from '../http/body-memory.ts';
import { discardRest } from '../http/discard.ts';
import { type Admitted, chargeCall, newHoldId } from '../limits/admit.ts';
import { McpAnswer } from './answer.ts';
import { endRefusal, nothingRan } from './judge-end.ts';
import { LegacyStream, refuseOnStream } from './legacy-sse.ts';
import { NOTHING, priceCalls } from './price.ts';
import { logMcpCall, mcpRecord } from './record.ts';
import { ChargeRefund } from './refund.ts';
import { isLimit, mcpRefusalAnswer } from './refuse.ts';
import { identify, type McpCall, readPost } from './request.ts';
import { isKeptBack, sendMcp } from './send.ts';

/** A refused request, as far as it was read, so that the refusal reaches the client that waits for an answer. */
type Refused = Pick<Partial<McpCall>, 'grant' | 'messages' | 'endpoint'> & { readonly refusal: Refusal };

/**
 * `POST, GET, DELETE /mcp/mcp?url=…&token=…`: identify → read → price → charge → forward → refund what did not run. It
 * serves Streamable HTTP and the older HTTP+SSE. The gateway keeps nothing of a session, so any gateway may serve it.
 */
export function mcpCall(deps: McpDeps): Handler<GatewayEnv> {
  return async (c) => {
    const incoming = c.env.incoming as IncomingMessage;
    const outgoing = c.env.outgoing as ServerResponse;
    const requestId = c.get('requestId');
    const bodyMemory = deps.bodyMemory.newReservation();
    const serving = serve(deps, requestId, incoming, outgoing, bodyMemory);
    const refused = await serving.finally(bodyMemory.release);
    // A holder who has left, or has part of an answer, gets no refusal.
    if (!refused || outgoing.headersSent || outgoing.destroyed) return RESPONSE_ALREADY_SENT;
    discardRest(incoming);
    const { refusal, grant, messages, endpoint } = refused;
    if (!grant || !endpoint) return mcpRefusalAnswer(refusal, messages, requestId);
    if (await refuseOnStream(deps, grant, endpoint, { refusal, messages, requestId }))
      return c.body(null, 202);
    // A client of the 2024-11-05 transport reads only the status of its POST. An error status says that no answer will come.
    const absent = isLimit(refusal) ? { ...refusal, code: 'not_found' as const } : refusal;
    return mcpRefusalAnswer(absent, undefined, requestId);
  };
}

/** Serves one request. Returns a refusal only while nothing has been written. */
async function serve(
  deps: McpDeps,
  requestId: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  bodyMemory: Reservation,
): Promise<Refused | undefined> {
  const beganMs = deps.now();
  const identified = identify(deps, incoming);
  if ('refusal' in identified) return identified;
  const { grant, method, session, endpoint } = identified;
  const read = method === 'POST' ? await readPost(deps, grant, incoming, bodyMemory) : NO_MESSAGES;
  if ('refusal' in read) return { ...read, grant, endpoint };
  const { messages, body } = read;
  const refused = (refusal: Refusal): Refused => ({ refusal, grant, messages, endpoint });

  const found = await loadPolicy(deps, requestId, grant);
  if ('refusal' in found) return refused(found.refusal);
  const { policy } = found;
  const { server } = policy;
  if (!server) return refused({ code: 'token_invalid' });
  const priced = priceCalls(messages?.all ?? [], server, deps.mcpPrices);
  if ('refusal' in priced) return refused(priced.refusal);
  const { charged } = priced;
  const chargeId = newHoldId();
  const call: McpCall = {
    ...{ requestId, incoming, outgoing, method, grant, policy, server, messages, body, bodyMemory },
    ...{ session, endpoint, charged, chargeId, beganMs },
  };
  const refund = new ChargeRefund(deps, call);
  const ask = { chargeId, ...refund.requests.all, record: mcpRecord(call) };
  const counted = await chargeCall(deps, requestId, grant, policy, ask);
  if ('refusal' in counted) return refused(counted.refusal);
  const running = run(deps, call, counted.admitted, refund);
  deps.underWay.track(running);
  const failed = await running;
  return failed && refused(failed);
}

const NO_MESSAGES = { messages: undefined, body: null } as const;

/** Sends a charged call, passes its answer on, and refunds what did not run. */
async function run(
  deps: McpDeps,
  call: McpCall,
  admitted: Admitted,
  refund: ChargeRefund,
): Promise<Refusal | undefined> {
  const { requestId, incoming, grant, server, method } = call;
  const stream = { requestId, grant, serverUrl: server.url, target: incoming.url ?? '' };
  const legacy = method === 'GET' ? new LegacyStream(deps, stream) : undefined;
  const eventMemory = deps.bodyMemory.newReservation();
  const { encryptionKeys } = deps;
  const answer = new McpAnswer({ call, admitted, refund, legacy, eventMemory, encryptionKeys });
  const sent = await sendMcp(deps, call, admitted, answer);
  eventMemory.release();
  legacy?.close();
  const { requests } = refund;
  if (nothingRan(sent)) await refund.give(requests.all, 'status' in sent ? sent.status : undefined);
  // Errors that the answer held before it broke off count.
  else if (sent.is === 'broken') await refund.give(requests.unrun);
  logMcpCall(deps, call, sent, nothingRan(sent) ? NOTHING : requests.kept);
  if (sent.is === 'complete' && !isKeptBack(sent.status)) await answer.finish();
  if (sent.is === 'broken') answer.abort(sent.why);
  return endRefusal(sent);
}
