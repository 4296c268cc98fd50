import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';

/** Clients send one request after the other. A connection that sends very many at once would delay all others. */
const PIPELINED_MAX = 4;
/** A connection with this many further requests is read no more. Its client may then lose the answers. No SDK sends so many at once. */
const FLOOD = 64;

/**
 * Serves requests. A connection with too many at once is closed after the served ones, and its later requests are neither served nor
 * counted (RFC 9112 §9.3.2: a client may send them again).
 */
export const boundPipelining = (serve: RequestListener): BoundListener => {
  /** For each connection: how many of its requests are being served, and how many later ones are ignored. */
  const pipelined = new WeakMap<object, { serving: number; ignored: number; isClosing: boolean }>();
  const listener: RequestListener = (incoming, outgoing) => {
    const { socket } = incoming;
    const state = pipelined.get(socket) ?? { serving: 0, ignored: 0, isClosing: false };
    pipelined.set(socket, state);
    if (state.isClosing) {
      if (++state.ignored === 1) abortCheaply(socket);
      if (state.ignored === FLOOD) socket.pause();
      return;
    }
    state.serving++;
    state.isClosing = state.serving >= PIPELINED_MAX;
    if (state.isClosing) outgoing.shouldKeepAlive = false;
    outgoing.once('close', () => state.serving--);
    serve(incoming, outgoing);
  };
  return { listener, isServing: (socket) => (pipelined.get(socket)?.serving ?? 0) > 0 };
};

/** `isServing`: whether requests of a connection are still being served. */
export type BoundListener = {
  readonly listener: RequestListener;
  readonly isServing: (socket: object) => boolean;
};

/** When a connection closes, Node creates an error for each of its requests. Thousands of stack traces would take a tenth of a second. */
function abortCheaply(socket: Socket): void {
  const { stackTraceLimit } = Error;
  socket.prependOnceListener('close', () => {
    Error.stackTraceLimit = 0;
  });
  socket.once('close', () => {
    Error.stackTraceLimit = stackTraceLimit;
  });
}
