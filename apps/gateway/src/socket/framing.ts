import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer } from 'ws';

/** A message may come in so many frames. Each one is kept with its overhead until the last has come. */
const MOST_FRAGMENTS = 256;
/**
 * A message that takes more reads than this to arrive comes in very small pieces. Each of them takes a kilobyte of memory until the message is
 * whole, so a holder, who is a stranger, has fewer: 1 MB in segments of 536 bytes, the least that every network carries.
 */
const MOST_CHUNKS = { holder: 2_048, upstream: 64 * 1024 };
/** How long a peer has to answer a close before its connection ends. */
const CLOSE_TIMEOUT_MS = 3_000;

const options = (maxPayload: number, of: keyof typeof MOST_CHUNKS) => ({
  maxPayload,
  maxFragments: MOST_FRAGMENTS,
  maxBufferedChunks: MOST_CHUNKS[of],
  // A flood of pings must not fill memory with answers that the peer does not read.
  autoPong: false,
  allowSynchronousEvents: true,
  skipUTF8Validation: false,
  closeTimeout: CLOSE_TIMEOUT_MS,
});

type Accepting = {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  /** Lines of the answer's head. */
  readonly headers: readonly string[];
  /** The subprotocol. Undefined: none. */
  readonly protocol: string | undefined;
};

/**
 * Accepts a holder's handshake, without compression: a frame of a few bytes could grow without end.
 * @returns undefined where the handshake is malformed, which is answered
 */
export function acceptHolder(
  { incoming, socket, head, headers, protocol }: Accepting,
  maxPayload: number,
): WebSocket | undefined {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    handleProtocols: () => protocol ?? false,
    ...options(maxPayload, 'holder'),
  });
  server.on('headers', (lines) => void lines.push(...headers));
  let accepted: WebSocket | undefined;
  server.handleUpgrade(incoming, socket, head, (each) => {
    accepted = each;
  });
  return accepted;
}

/** A browser can send a key in no other place than a subprotocol. */
const KEY_BEARING = /^openai-(?:insecure-api-key|organization|project)\./i;

/** The subprotocols that a handshake offers, without keys. */
export const offeredProtocols = ({ headers }: IncomingMessage): string[] =>
  (headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '' && !KEY_BEARING.test(each));

/** The part of `ws` that its own client is made of: the handshake is ours, because connections have one way out. */
type Unopened = WebSocket & {
  _isServer: boolean;
  setSocket: (socket: Duplex, head: Buffer, options: object) => void;
};
const UnopenedSocket = WebSocket as unknown as new (
  address: null,
  protocols: undefined,
  options: object,
) => Unopened;

/** The client's side of a connection that an upstream has upgraded. Its frames are masked. */
export function openClient(socket: Duplex, maxPayload: number): WebSocket {
  const client = new UnopenedSocket(null, undefined, options(maxPayload, 'upstream'));
  client._isServer = false;
  client.setSocket(socket, Buffer.alloc(0), options(maxPayload, 'upstream'));
  return client;
}

/** A chunk takes at most this much besides its bytes. */
const CHUNK_OVERHEAD_BYTES = 1024;

/** The part of `ws` that keeps a message until it is whole. */
type Receiving = {
  readonly _socket: Duplex;
  readonly _receiver: { readonly _bufferedBytes: number; readonly _fragments: readonly unknown[] };
};

/**
 * Calls `changed` with the memory of a message that is not whole yet, in bytes. A part of a chunk keeps the whole chunk, so all chunks count that
 * have come since the message began.
 */
export function watchUnfinished(socket: WebSocket, changed: (bytes: number) => void): void {
  const { _socket: bytes, _receiver: receiver } = socket as unknown as Receiving;
  let kept = 0;
  socket.on('message', () => {
    kept = 0;
  });
  // `ws` has its own listener before this one, so it has taken the chunk already.
  bytes.on('data', (chunk: Buffer) => {
    const isNothing = receiver._bufferedBytes === 0 && receiver._fragments.length === 0;
    kept = isNothing ? 0 : kept + chunk.length + CHUNK_OVERHEAD_BYTES;
    changed(kept);
  });
}

/** A code that an endpoint may send (RFC 6455 §7.4). */
export const sendable = (code: number): boolean =>
  (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) ||
  (code >= 3000 && code <= 4999);

/** A close frame has room for 123 bytes of its reason. */
const REASON_MAX_BYTES = 123;

/** Closes a socket. */
export function closeWith(socket: WebSocket, code: number, reason = ''): void {
  if (socket.readyState !== WebSocket.OPEN) return;
  const text = Buffer.byteLength(reason) > REASON_MAX_BYTES ? '' : reason;
  if (code === 1005) socket.close();
  else socket.close(sendable(code) ? code : 1011, text);
}
