import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { socketOf } from '@presign/providers';
import { errorStatus, type Refusal } from '@presign/schema';
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
 * Tells a page why its handshake was refused: scripts of a browser see neither the status nor the body of an answer. The socket is accepted,
 * gets the error event, and is closed. It draws on the quota of its URL.
 * @returns false where it is answered by HTTP: no page asks, the URL has spent its quota, or too many others are open
 */
export function tellPage(
  deps: Pick<LlmDeps, 'readQuota' | 'sockets'>,
  { requestId, incoming, socket, head, grant, path }: Refusing,
  refusal: Refusal,
): boolean {
  const { readQuota, sockets } = deps;
  if (incoming.headers.origin === undefined || socket.destroyed || readQuota.waitMs(grant) > 0) return false;
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
  const write = isRealtime(grant, path) ? realtimeError : responsesDialect.errorEvent;
  holder.send(write(refusal, requestId, ''));
  closeWith(holder, codeFor(refusal), refusal.code);
  return true;
}

/** The path may be one that the URL does not allow. Then the page speaks the protocol of the URL's own, or none. */
const isRealtime = ({ provider, paths }: LlmGrant, path: string): boolean =>
  [path, ...paths].map((each) => socketOf(provider, each)).find((each) => each !== undefined) === 'realtime';

/** 1013 (https://www.iana.org/assignments/websocket): the same handshake may pass later. */
const codeFor = (refusal: Refusal): number =>
  closeCodeOf(refusal) ?? (refusal.retryAfterSeconds === undefined && !mayPass(refusal) ? 4400 : 1013);

/** A fault of the gateway, of a store, or of a provider that is down or says so. */
const mayPass = (refusal: Refusal): boolean => {
  const { code, details } = refusal;
  const status = Number((code === 'upstream_unreachable' && details?.status) || errorStatus(refusal));
  return status >= 500 || status === 429;
};
