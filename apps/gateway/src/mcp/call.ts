import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { McpServerPolicy, Refusal } from '@presign/schema';
import type { Handler } from 'hono';
import type { GatewayEnv, McpDeps } from '../deps.ts';
import { loadPolicy, type Policy } from '../grant/policy.ts';
import type { McpGrant } from '../grant/verify.ts';
import { readDecoded } from '../http/body.ts';
import type { Reservation } from '../http/body-memory.ts';
import { chargeCall, newHoldId } from '../limits/admit.ts';
import { checkHeaders, type Messages, readMessages } from './messages.ts';
import { priceCalls } from './price.ts';
import { readMcpUrl } from './read-mcp-url.ts';
import { mcpRecord } from './record.ts';
import { UnrunRequests } from './refund.ts';
import { isLimit, mcpRefusalAnswer } from './refuse.ts';
import { runCall } from './run-call.ts';
import { type Endpoint, unsealEndpoint, unsealSession } from './sealed-session.ts';
import { tellOnStream } from './tell-on-stream.ts';

/** One POST, GET or DELETE of an MCP client, as far as it has come. */
export type McpCall = {
  readonly requestId: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly method: Method;
  readonly grant: McpGrant;
  readonly policy: Policy;
  readonly server: McpServerPolicy;
  /** What a POST carries. */
  readonly messages: Messages | undefined;
  readonly body: Buffer | null;
  /** The server's own session id. */
  readonly session: string | undefined;
  /** Of the older transport: where the message goes. */
  readonly endpoint: Endpoint | undefined;
  readonly chargeId: string;
  readonly unrun: UnrunRequests;
  readonly beganMs: number;
};

type Method = 'POST' | 'GET' | 'DELETE';

/** What a request turned out to be, when it is refused: so that the refusal reaches who waits for an answer. */
export type Refused = Pick<Partial<McpCall>, 'grant' | 'messages' | 'endpoint'> & {
  readonly refusal: Refusal;
};

/**
 * `POST, GET, DELETE /mcp/mcp?url=…&token=…`: verify → read → price → charge → forward → give back what did not run.
 * Streamable HTTP and the older HTTP+SSE alike; nothing of a session is kept here, so any gateway may serve it.
 */
export function mcpCall(deps: McpDeps): Handler<GatewayEnv> {
  return async (c) => {
    const incoming = c.env.incoming as IncomingMessage;
    const outgoing = c.env.outgoing as ServerResponse;
    const requestId = c.get('requestId');
    const held = deps.bodyMemory.newReservation();
    const refused = await serve(deps, requestId, incoming, outgoing, held).finally(held.release);
    if (!refused || outgoing.headersSent || outgoing.destroyed) return RESPONSE_ALREADY_SENT;
    if (await tellOnStream(deps, refused, requestId)) return c.body(null, 202);
    const { refusal, messages, endpoint } = refused;
    // With the older transport the answer to a POST is not looked at; only a status tells that nothing will come.
    const told = endpoint && isLimit(refusal) ? { ...refusal, code: 'not_found' as const } : refusal;
    return mcpRefusalAnswer(told, endpoint ? undefined : messages, requestId);
  };
}

async function serve(
  deps: McpDeps,
  requestId: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  held: Reservation,
): Promise<Refused | undefined> {
  const beganMs = deps.now();
  const asked = identify(deps, incoming);
  if ('refusal' in asked) return asked;
  const { grant, method, session, endpoint } = asked;
  const read = method === 'POST' ? await readPost(incoming, held) : NO_MESSAGES;
  if ('refusal' in read) return { ...read, grant, endpoint };
  const { messages } = read;
  const refused = (refusal: Refusal): Refused => ({ refusal, grant, messages, endpoint });

  const found = await loadPolicy(deps, requestId, grant);
  if ('refusal' in found) return refused(found.refusal);
  const { policy } = found;
  if (!policy.server) return refused({ code: 'token_invalid' });
  const priced = priceCalls(messages?.all ?? [], policy.server, deps.mcpPrices);
  if ('refusal' in priced) return refused(priced.refusal);

  const call: McpCall = {
    ...{ requestId, incoming, outgoing, method, grant, policy, messages, session, endpoint, beganMs },
    server: policy.server,
    body: read.body,
    chargeId: newHoldId(),
    unrun: new UnrunRequests(priced.charged, messages?.all),
  };
  const charged = await chargeCall(deps, requestId, grant, policy, {
    chargeId: call.chargeId,
    ...call.unrun.all,
    record: mcpRecord(call),
  });
  if ('refusal' in charged) return refused(charged.refusal);
  const failed = await track(deps, runCall(deps, call, charged.admitted, held));
  return failed && refused(failed);
}

const NO_MESSAGES = { messages: undefined, body: null } as const;

type Asked = Pick<McpCall, 'grant' | 'method' | 'session' | 'endpoint'>;

/** Who asks for which server, by the token and what was sealed for its grant. */
function identify(deps: McpDeps, { url, method, headers }: IncomingMessage): Asked | Refused {
  const asked = readMcpUrl(url ?? '');
  if (!asked) return { refusal: { code: 'token_invalid', message: INCOMPLETE } };
  const verified = deps.verify(asked.token);
  if ('refusal' in verified) return verified;
  const { grant } = verified;
  if (!isServer(grant, asked.url)) return { refusal: { code: 'token_invalid', message: OTHER_SERVER } };
  if (method !== 'POST' && method !== 'GET' && method !== 'DELETE') {
    return { refusal: { code: 'method_not_allowed', message: `MCP has no ${method}.` } };
  }
  const sealed = headers['mcp-session-id'];
  const session =
    sealed === undefined ? undefined : unsealSession(deps.encryptionKeys, grant, String(sealed));
  if (sealed !== undefined && session === undefined) return { refusal: NO_SESSION };
  const endpoint =
    asked.endpoint === undefined ? undefined : unsealEndpoint(deps.encryptionKeys, grant, asked.endpoint);
  if (asked.endpoint !== undefined && !endpoint) return { refusal: NO_SESSION };
  return { grant, method, session, endpoint };
}

/** Whether a URL is byte for byte the one that a token was issued for. */
const isServer = ({ server }: McpGrant, url: string): boolean =>
  createHash('sha256').update(url).digest('base64url') === server;

const INCOMPLETE = 'Use this URL as it was issued: it carries the parameters url and token.';
const OTHER_SERVER = 'The parameter url is not the one that this URL was issued for.';
const NO_SESSION: Refusal = { code: 'not_found', message: 'Session not found.' };

/** The messages of a POST, with the bytes to send. */
async function readPost(
  incoming: IncomingMessage,
  held: Reservation,
): Promise<{ messages: Messages; body: Buffer } | { refusal: Refusal }> {
  const whole = await readDecoded(incoming, held);
  if ('refusal' in whole) return whole;
  const read = readMessages(whole.bytes);
  if ('refusal' in read) return read;
  const odd = checkHeaders(incoming.headers, read.messages);
  return odd ? { refusal: odd } : { messages: read.messages, body: whole.bytes };
}

function track<T>(deps: McpDeps, work: Promise<T>): Promise<T> {
  deps.underWay.track(work);
  return work;
}
