import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { socketOf } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { LlmGrant } from '../grant/verify.ts';
import type { LlmDeps } from '../llm/llm-deps.ts';
import { takeUnsent } from '../share/read-quota.ts';
import { closeCodeOf } from './dialects/end.ts';
import { realtimeError } from './dialects/realtime.ts';
import { responsesDialect } from './dialects/responses.ts';
import { acceptHolder, closeWith, offeredProtocols } from './framing.ts';

/** A refused handshake of a URL that a key of this gateway has signed. */
type Refusing = {
  readonly requestId: string;
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly grant: LlmGrant;
  readonly path: string;
};

/** A page may have sent this many frames before it reads the refusal. A longer message ends the reading. */
const UNREAD_MOST = 32;
const UNREAD_BYTES = 4 * 1024;

/**
 * Shows a page why its handshake was refused, because browser scripts see neither the status nor the body of an HTTP answer. The socket is
 * accepted, gets the error event, and is closed. It draws on the quota of its URL.
 * @returns false if the refusal is sent over HTTP: the request is not from a page, the path has no socket, the URL has used up its quota,
 * or too many others are open
 */
export function tellPage(
  deps: Pick<LlmDeps, 'readQuota' | 'sockets'>,
  { requestId, incoming, socket, head, grant, path }: Refusing,
  refusal: Refusal,
): boolean {
  const { readQuota, sockets } = deps;
  const protocol = socketOf(grant.provider, path);
  const isOfPage = incoming.headers.origin !== undefined && protocol !== undefined;
  if (!isOfPage || socket.destroyed || readQuota.waitMs(grant) > 0) return false;
  const leave = sockets.enterRefused(grant.id);
  if (!leave) return false;
  takeUnsent(readQuota, grant);
  const accepting = {
    incoming,
    socket,
    head,
    headers: [`x-presign-request-id: ${requestId}`],
    protocol: offeredProtocols(incoming)[0],
  };
  const holder = acceptHolder(accepting, UNREAD_BYTES);
  if (!holder) {
    leave();
    return true;
  }
  let unread = 0;
  const count = () => {
    if (++unread > UNREAD_MOST) holder.terminate();
  };
  for (const kind of ['message', 'ping', 'pong'] as const) holder.on(kind, count);
  holder.on('error', () => {}).once('close', leave);
  const write = protocol === 'realtime' ? realtimeError : responsesDialect.errorEvent;
  holder.send(write(refusal, requestId, ''));
  closeWith(holder, codeFor(refusal), refusal.code);
  return true;
}

/** 1013 (https://www.iana.org/assignments/websocket): the same handshake may pass later. */
const codeFor = (refusal: Refusal): number =>
  closeCodeOf(refusal) ?? (refusal.retryAfterSeconds === undefined && !mayPass(refusal) ? 4400 : 1013);

/** A provider that is down, or that says so. */
const mayPass = ({ code, details }: Refusal): boolean => {
  const status = Number(details?.status ?? 500);
  return code === 'upstream_unreachable' && (status >= 500 || status === 429);
};
