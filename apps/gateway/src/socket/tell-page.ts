import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { socketOf } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { LlmGrant } from '../grant/verify.ts';
import type { LlmDeps } from '../llm/llm-deps.ts';
import { takeUnsent } from '../share/read-quota.ts';
import { closeCodeOf } from './end.ts';
import { acceptHolder, closeWith, offeredProtocols } from './framing.ts';
import { realtimeError } from './realtime.ts';
import { responsesDialect } from './responses.ts';

/** A handshake that was refused, of a URL that a key of this gateway has signed. */
type Refusing = {
  readonly requestId: string;
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly grant: LlmGrant;
  readonly path: string;
};

/** A page may have sent so many events before it reads that it was refused. */
const UNREAD_MOST = 32;

/**
 * Tells a page why its handshake was refused: scripts of a browser see neither the status nor the body of an answer. The socket is accepted,
 * gets the error event, and is closed. It is among the sockets of its URL until then, and draws on its quota.
 * @returns false where it is answered by HTTP: no page asks, the path has no socket, or the URL has spent its quota or its sockets
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
  const entered = sockets.enter({ grantId: grant.id, accountId: grant.id });
  if ('refusal' in entered) return false;
  takeUnsent(readQuota, grant);
  const accepting = {
    incoming,
    socket,
    head,
    headers: [`x-presign-request-id: ${requestId}`],
    protocol: offeredProtocols(incoming)[0],
  };
  const holder = acceptHolder(accepting, sockets.bounds.holderMessageBytes);
  if (!holder) {
    entered.leave();
    // It was malformed, and is answered.
    return true;
  }
  let unread = 0;
  const count = () => {
    if (++unread > UNREAD_MOST) holder.terminate();
  };
  holder
    .on('error', () => {})
    .on('message', count)
    .on('ping', count)
    .once('close', entered.leave);
  const write = protocol === 'realtime' ? realtimeError : responsesDialect.errorEvent;
  holder.send(write(refusal, requestId, ''));
  closeWith(holder, codeFor(refusal), refusal.code);
  return true;
}

/** 1013 (https://www.iana.org/assignments/websocket): the same handshake may pass later. */
const codeFor = (refusal: Refusal): number =>
  closeCodeOf(refusal) ?? (refusal.retryAfterSeconds === undefined ? 4400 : 1013);
