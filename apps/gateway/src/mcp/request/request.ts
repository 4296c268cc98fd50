import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { McpServerPolicy, Refusal } from '@presign/schema';
import type { CallReport } from '../../call-report.ts';
import { loadPolicy } from '../../grant/load-policy.ts';
import type { Policy } from '../../grant/policy.ts';
import { compileTools, type ToolRules } from '../../grant/tool-rules.ts';
import type { McpGrant, VerifiedGrant } from '../../grant/verify.ts';
import { mayBeLarge, readDecoded } from '../../http/body.ts';
import { precheck } from '../../limits/precheck.ts';
import { type Reservation, SMALL_BODY_BYTES } from '../../share/body-memory.ts';
import type { Begun } from '../../share/free-work.ts';
import { takeWork } from '../../share/read-quota.ts';
import type { Cookie } from '../ids/cookies.ts';
import { type Endpoint, unsealEndpoint } from '../ids/endpoint.ts';
import { unsealEvent } from '../ids/event-ids.ts';
import type { Listing } from '../ids/list-ids.ts';
import { type FreeRound, mayHaveRounds, type Rounds, roundsOf } from '../ids/rounds.ts';
import type { RpcId } from '../ids/rpc-id.ts';
import { unsealSession } from '../ids/session.ts';
import { unknownId, unsealBody, unsealTask } from '../ids/unseal-body.ts';
import type { UnansweredRequests } from '../open/unanswered.ts';
import type { McpDeps } from './mcp-deps.ts';
import { checkHeaders, type Messages, readMessages, scanMessages } from './messages.ts';
import type { Charged } from './price.ts';

/** One POST, GET or DELETE of an MCP client, read and priced. */
export type McpCall = {
  readonly requestId: string;
  readonly report: CallReport;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly method: Method;
  readonly grant: McpGrant;
  readonly policy: Policy;
  readonly server: McpServerPolicy;
  /** The messages of a POST. */
  readonly messages: Messages | undefined;
  /** The bytes to send. They go once they are sent, because a call may take a day. */
  readonly body: { bytes: Buffer | null };
  /** The memory that its body takes. */
  readonly bodyMemory: Reservation;
  /** The server's own session id. */
  readonly session: string | undefined;
  /** The cookies of the answer that began the session, or the stream of the 2024-11-05 transport. */
  readonly cookies: readonly Cookie[];
  /** The server's own id of the event after which a stream goes on. */
  readonly lastEventId: string | undefined;
  /** The requests whose answers a stream still brings that goes on after that event. */
  readonly resumes: readonly RpcId[];
  /** The server's own id of the task that a request is about. */
  readonly taskId: string | undefined;
  /** Where a POST of the 2024-11-05 transport goes. */
  readonly endpoint: Endpoint | undefined;
  readonly rounds?: Rounds | undefined;
  /** The request is a further round of one that was charged. */
  readonly round?: FreeRound | undefined;
  /** The messages that cost a use. */
  readonly charged: readonly Charged[];
  readonly chargeId: string;
  readonly beganMs: number;
  /** Its requests without an answer. */
  readonly unanswered: UnansweredRequests;
  /** Its place among the open streams and free requests of the URL. */
  readonly begun: Begun;
  /** Before the lease of its places began, by `monotonicMs`. Undefined: it has none. */
  readonly placedMs?: number;
};

type Method = 'POST' | 'GET' | 'DELETE';

/** A request whose token is valid for the server that its URL names. */
export type Identified = Pick<
  McpCall,
  'grant' | 'method' | 'session' | 'cookies' | 'lastEventId' | 'resumes' | 'endpoint'
>;

/** A request that is refused by its URL. An expired token still names its grant and endpoint. */
type Unidentified = {
  readonly refusal: Refusal;
  readonly grant?: McpGrant | undefined;
  /** The grant that any refused token names, if a key of this gateway has signed it. */
  readonly signed?: VerifiedGrant | undefined;
  readonly endpoint?: Endpoint | undefined;
};

type IdentifyDeps = Pick<McpDeps, 'verify' | 'encryptionKeys' | 'memory'>;
type Head = Pick<IncomingMessage, 'url' | 'method' | 'headers'>;

/** Checks the token, and unseals what was sealed for its grant. */
export function identify(deps: IdentifyDeps, head: Head): Identified | Unidentified {
  const asked = readMcpUrl(head.url ?? '');
  if (!asked) return { refusal: { code: 'token_invalid', reason: 'incomplete_url', message: INCOMPLETE } };
  const verified = deps.verify(asked.token);
  if (!('refusal' in verified)) return unsealHead(deps, verified.grant, asked, head);
  const { refusal, expired, signed } = verified;
  const endpoint = expired && unsealEndpoint(deps.encryptionKeys, expired, asked.endpoint);
  return { refusal, grant: expired, signed, endpoint };
}

/** Like `identify`, for a URL whose only fault is its age. */
export function identifyExpired(deps: IdentifyDeps, grant: McpGrant, head: Head): Identified | undefined {
  const asked = readMcpUrl(head.url ?? '');
  const identified = asked && unsealHead(deps, grant, asked, head);
  return identified && 'refusal' in identified ? undefined : identified;
}

function unsealHead(
  deps: IdentifyDeps,
  grant: McpGrant,
  asked: McpUrl,
  { method, headers }: Head,
): Identified | Unidentified {
  const signed = grant;
  // A policy that is known names the server that the token was issued for.
  if (deps.memory.policies.peek(grant.id)?.server?.url !== asked.url && !isServer(grant, asked.url))
    return { signed, refusal: { code: 'token_invalid', reason: 'other_server', message: OTHER_SERVER } };
  if (method !== 'POST' && method !== 'GET' && method !== 'DELETE') {
    return { signed, refusal: NO_METHOD };
  }
  const { 'mcp-session-id': sealedSession, 'last-event-id': sealedEvent } = headers;
  const session =
    sealedSession === undefined
      ? undefined
      : unsealSession(deps.encryptionKeys, grant, String(sealedSession));
  if (sealedSession !== undefined && !session) return { signed, refusal: NO_SESSION };
  if (session && session.id === undefined && method === 'DELETE') return { signed, refusal: NO_DELETE };
  const last =
    sealedEvent === undefined ? undefined : unsealEvent(deps.encryptionKeys, grant, String(sealedEvent));
  if (sealedEvent !== undefined && !last) return { signed, refusal: unknownId('event', 'Last-Event-ID') };
  const endpoint = unsealEndpoint(deps.encryptionKeys, grant, asked.endpoint);
  if (asked.endpoint !== undefined && !endpoint) return { signed, refusal: NO_SESSION };
  const cookies = endpoint?.cookies ?? session?.cookies ?? [];
  const resumes = last?.open ?? [];
  return { grant, method, session: session?.id, cookies, lastEventId: last?.id, resumes, endpoint };
}

/** Whether a URL is byte for byte the one that a token was issued for. */
const isServer = ({ server }: McpGrant, url: string): boolean => hash('sha256', url, 'base64url') === server;

const NO_METHOD: Refusal = { code: 'method_not_supported', details: { allowed: ['GET', 'POST', 'DELETE'] } };
/** The server knows no session that could be ended. */
const NO_DELETE: Refusal = { code: 'method_not_supported', details: { allowed: ['GET', 'POST'] } };
const INCOMPLETE = 'This URL is incomplete: it needs its url and token parameters. Use it as it was issued.';
const OTHER_SERVER = 'The parameter url is not the one that this URL was issued for.';
const NO_SESSION: Refusal = { code: 'not_found', message: 'Session not found.' };

type ReadPost = { readonly messages: Messages; readonly body: Listing } & Pick<McpCall, 'taskId' | 'rounds'>;

/** Reads the messages of a POST, and the bytes to send. The messages of a large body are read in a worker. */
export async function readPost(
  deps: McpDeps,
  report: CallReport,
  grant: McpGrant,
  incoming: IncomingMessage,
  memory: Reservation,
): Promise<ReadPost | { refusal: Refusal; messages?: Messages }> {
  const { readQuota, bodyWorkers } = deps;
  const early = mayBeLarge(incoming) ? await refusalOfAny(deps, report.requestId, grant) : undefined;
  if (early) return { refusal: early };
  memory.belongsTo(grant.id);
  const readAt = performance.now();
  const whole = await readDecoded(incoming, memory);
  report.bodyMs = performance.now() - readAt;
  if ('refusal' in whole) return whole;
  const scan = takeWork(
    readQuota,
    grant,
    whole.bytes,
    (most) => scanMessages(whole.bytes, most),
    SMALL_BODY_BYTES,
  );
  const rules = grant.limitsArguments ? await rulesOf(deps, report.requestId, grant) : undefined;
  const read =
    scan && (!rules || whole.bytes.length <= JUDGED_HERE_BYTES)
      ? readMessages(whole.bytes, rules?.arguments, scan, mayHaveRounds(incoming.headers))
      : await bodyWorkers.readMessages(grant, whole.bytes, rules?.server.arguments);
  if (rules) readQuota.take(grant, JUDGED_TIMES * Math.min(whole.bytes.length, JUDGED_HERE_BYTES));
  if ('refusal' in read) return read;
  const { messages } = read;
  const mismatch = checkHeaders(incoming.headers, messages);
  if (mismatch) return { refusal: mismatch };
  const unsealed = unsealBody(deps.encryptionKeys, grant, whole.bytes, messages.ids ?? []);
  // A URL that is dead says so first.
  if ('refusal' in unsealed)
    return { refusal: (await refusalOfAny(deps, report.requestId, grant)) ?? unsealed.refusal, messages };
  const taskId = unsealTask(deps.encryptionKeys, grant, messages.ids ?? []);
  const rounds = roundsOf(deps.encryptionKeys, grant, messages);
  return { messages, body: unsealed, taskId, rounds };
}

/** To compare names takes longer than to read them: at most 10 ms for a body of this size, which pays this many times its bytes. */
const JUDGED_HERE_BYTES = 16 * 1024;
const JUDGED_TIMES = 8;

/** The rules by which arguments are judged as they are read. Without a policy the call is refused later, by its id. */
async function rulesOf(deps: McpDeps, requestId: string, grant: McpGrant): Promise<ToolRules | undefined> {
  const found = await loadPolicy(deps, requestId, grant);
  const server = 'refusal' in found ? undefined : found.policy.server;
  return server && deps.memory.tools.of(grant.id, () => compileTools(server));
}

/** The refusal that every message of this URL would get. Free messages pass when the URL's uses are spent. */
async function refusalOfAny(deps: McpDeps, requestId: string, grant: McpGrant): Promise<Refusal | undefined> {
  const found = await loadPolicy(deps, requestId, grant);
  if ('refusal' in found) return found.refusal;
  return precheck(deps, requestId, { grant, policy: found.policy, uses: 0, readsMuch: true });
}

/** The parameters of an MCP URL. */
export type McpUrl = {
  /** The server's address. */
  readonly url: string;
  readonly token: string;
  /** The sealed endpoint of the 2024-11-05 transport. */
  readonly endpoint: string | undefined;
};

/**
 * Reads `…?url=<server>&token=<token>[&ep=<endpoint>]`. Parameters of other names are ignored.
 * @returns undefined when `url` or `token` is missing, or when one of the three is repeated or not percent-encoded UTF-8
 */
export function readMcpUrl(target: string): McpUrl | undefined {
  const mark = target.indexOf('?');
  const found = new Map<string, string>();
  for (const part of mark < 0 ? [] : target.slice(mark + 1).split('&')) {
    const equals = part.indexOf('=');
    const name = equals < 0 ? part : part.slice(0, equals);
    if (!NAMES.has(name)) continue;
    const value = decode(part.slice(equals + 1));
    if (found.has(name) || value === undefined) return undefined;
    found.set(name, value);
  }
  const [url, token] = [found.get('url'), found.get('token')];
  return url && token ? { url, token, endpoint: found.get('ep') } : undefined;
}

const NAMES: ReadonlySet<string> = new Set(['url', 'token', 'ep']);

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
