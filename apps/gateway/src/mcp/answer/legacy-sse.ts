import type { IncomingMessage } from 'node:http';
import type { EncryptionKeys } from '@presign/crypto';
import type { Refusal } from '@presign/schema';
import type { Logger } from 'pino';
import type { VerifiedGrant } from '../../grant/verify.ts';
import type { Cookie } from '../ids/cookies.ts';
import { type Endpoint, sealEndpoint } from '../ids/endpoint.ts';
import type { RpcId } from '../ids/rpc-id.ts';
import type { Listeners, Listening } from '../open/listeners.ts';
import { UnansweredRequests } from '../open/unanswered.ts';
import { type Messages, waitingIds } from '../request/messages.ts';
import { errorMessages } from './refuse.ts';

/**
 * The HTTP+SSE transport of MCP 2024-11-05. Its client holds one GET stream, whose first event names the endpoint for POSTs. The answers to
 * those POSTs arrive on that stream. The POST and the stream may be at different gateways.
 */
export type LegacyDeps = {
  readonly encryptionKeys: EncryptionKeys;
  readonly gatewayUrl: string;
  readonly listeners: Listeners;
  readonly log: Logger;
};

/**
 * Whether a request belongs to the 2024-11-05 transport: a POST to an endpoint that a stream named, or a GET for a stream. A Streamable
 * HTTP client sends session headers with its GET. Some clients of the older transport also send the protocol version and the id of the last
 * event.
 * @param transport of the URL, if known
 */
export function isLegacy(
  { url = '', method, headers }: IncomingMessage,
  transport: string | undefined,
): boolean {
  if (method === 'POST') return /[?&]ep=/.test(url);
  if (headers['mcp-session-id'] !== undefined) return false;
  if (transport === 'sse' || url.startsWith('/mcp/sse')) return true;
  const isOfSession = headers['mcp-protocol-version'] !== undefined || headers['last-event-id'] !== undefined;
  return transport !== 'http' && !isOfSession;
}

/** The GET that opened a stream. */
export type StreamRequest = {
  readonly requestId: string;
  readonly grant: VerifiedGrant;
  /** The server's address. */
  readonly serverUrl: string;
  /** The path and query that the holder sent. */
  readonly target: string;
};

/** The stream of one GET. It belongs to this transport once the server names an endpoint. */
export class LegacyStream {
  /** The requests whose answers must arrive on this stream. Any gateway may have received their POSTs. */
  readonly unanswered: UnansweredRequests;
  /** The cookies of its answer, which are sent with its messages. */
  cookies: readonly Cookie[] = [];
  readonly #deps: LegacyDeps;
  readonly #request: StreamRequest;
  #listening: Listening | undefined;
  #isClosed = false;

  /** @param resumes if a client resumes a stream of Streamable HTTP: the requests of its POST that still wait for answers */
  constructor(deps: LegacyDeps, request: StreamRequest, resumes: readonly RpcId[] = []) {
    this.#deps = deps;
    this.#request = request;
    this.unanswered = new UnansweredRequests(resumes);
  }

  /** Whether it is a stream of this transport. Its client cannot resume such a stream. */
  get hasEndpoint(): boolean {
    return this.#listening !== undefined;
  }

  /** Whether an event of the server names the endpoint and must therefore be rewritten. */
  namesEndpoint({ name }: { readonly name: string | undefined }): boolean {
    return name === 'endpoint';
  }

  /**
   * Rewrites the server's `endpoint` event to a path on this gateway, which contains the server's own endpoint, sealed. From then on the
   * stream listens for refusals.
   * @param send writes a refusal into the stream
   * @returns undefined when the endpoint has another origin, which would get the credential, or when Redis does not answer
   */
  rewriteEndpoint(data: string, send: (message: string) => void): Promise<Buffer | undefined> {
    return this.#rewrite(data, send).catch(() => undefined);
  }

  async #rewrite(data: string, send: (message: string) => void): Promise<Buffer | undefined> {
    const { requestId, grant, serverUrl, target } = this.#request;
    const named = data.trim();
    const endpoint = URL.canParse(named, serverUrl) ? new URL(named, serverUrl) : undefined;
    if (endpoint?.origin !== new URL(serverUrl).origin) {
      const line = { request_id: requestId, grant: grant.id };
      this.#deps.log.warn(line, 'an MCP server named an endpoint of another origin');
      return undefined;
    }
    // A second endpoint on one stream keeps the first one's channel.
    const receive = (text: string) => this.#receive(JSON.parse(text) as Notice, send);
    this.#listening ??= await this.#deps.listeners.listen(grant.partition, receive);
    if (this.#isClosed) this.#listening.close();
    const { channel } = this.#listening;
    const sealed = sealEndpoint(this.#deps.encryptionKeys, grant, {
      href: endpoint.href,
      channel,
      cookies: this.cookies,
    });
    return Buffer.from(`event: endpoint\ndata: ${ownPath(this.#deps.gatewayUrl, target)}&ep=${sealed}\n\n`);
  }

  #receive(notice: Notice, send: (message: string) => void): void {
    if ('opened' in notice) this.unanswered.add(notice.opened);
    if ('cancelled' in notice)
      for (const id of notice.cancelled) this.unanswered.waitsNoMore(id, 'cancelled');
    if ('answered' in notice) this.unanswered.answered(notice.answered);
    if ('errors' in notice) send(notice.errors);
  }

  /** Stops listening. */
  close(): void {
    this.#isClosed = true;
    this.#listening?.close();
  }
}

/** The stream's own path with its `url` and `token` parameters as they were sent. Clients require the same origin. */
function ownPath(gatewayUrl: string, target: string): string {
  const prefix = new URL(gatewayUrl).pathname.replace(/\/$/, '');
  const kept = target
    .slice(target.indexOf('?') + 1)
    .split('&')
    .filter((part) => part.startsWith('url=') || part.startsWith('token='));
  return `${prefix}/mcp/mcp?${kept.join('&')}`;
}

/** A message from the gateway that received a POST to the gateway that has the stream. */
type Notice =
  | { readonly opened: readonly RpcId[] }
  | { readonly cancelled: readonly RpcId[] }
  | { readonly answered: readonly RpcId[]; readonly errors: string };

/** The maximum total length of the ids in one POST. */
const IDS_MAX_CHARS = 64 * 1024;

/** A POST of this transport. Its answer arrives on its stream. */
export type LegacyPost = {
  readonly requestId: string;
  readonly grant: VerifiedGrant;
  readonly endpoint: Endpoint;
  readonly messages: Messages | undefined;
};

/** Reports forwarded requests to their stream, so that each gets an error if the stream is cut. */
export const announceRequests = (deps: LegacyDeps, post: LegacyPost): Promise<boolean> =>
  notify(deps, post, (ids) => ({ opened: ids }));

/** Reports cancelled requests to their stream. The server may still answer them. */
export const cancelOnStream = (deps: LegacyDeps, post: LegacyPost, ids: readonly RpcId[]): Promise<boolean> =>
  notify(deps, post, () => ({ cancelled: ids }), ids);

/**
 * Sends the refusal of a POST to the stream on which its client waits for an answer.
 * @returns false if no stream received it, so that the POST itself must be refused
 */
export const refuseOnStream = (deps: LegacyDeps, post: LegacyPost, refusal: Refusal): Promise<boolean> =>
  notify(deps, post, (ids) => ({
    answered: ids,
    errors: errorMessages(refusal, post.messages, post.requestId),
  }));

/** Reports on the stream that the server refused a POST. Some clients ignore the status of a POST and wait on their stream. */
export const endOnStream = (deps: LegacyDeps, post: LegacyPost, status: number): Promise<boolean> =>
  refuseOnStream(deps, post, {
    code: 'upstream_unreachable',
    message: `The MCP server refused this message with status ${status}.`,
  });

async function notify(
  { listeners, log }: LegacyDeps,
  { requestId, grant, endpoint, messages }: LegacyPost,
  notice: (ids: readonly RpcId[]) => Notice,
  ids = waitingIds(messages),
): Promise<boolean> {
  if (ids.length === 0 || JSON.stringify(ids).length > IDS_MAX_CHARS) return false;
  const text = JSON.stringify(notice(ids));
  return listeners.send(grant.partition, endpoint.channel, text).catch((error: Error) => {
    log.warn({ request_id: requestId, error: error.name }, 'a stream could not be notified');
    return false;
  });
}
