import type { IncomingMessage } from 'node:http';
import type { Duplex, Writable } from 'node:stream';
import type { Refusal } from '@presign/schema';
import { WebSocket, WebSocketServer } from 'ws';
import { tooLarge } from '../http/body.ts';
import type { End } from './dialects/end.ts';

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

/** Judges the headers of a handshake (RFC 6455 §4.2.1). */
export function malformedHandshake({ headers }: IncomingMessage): Refusal | undefined {
  const refuse = (param: string, problem: string): Refusal => ({
    code: 'invalid_request',
    param,
    message: `${param}: ${problem}.`,
  });
  if (headers['sec-websocket-version'] !== '13') return refuse('Sec-WebSocket-Version', 'expected 13');
  const key = headers['sec-websocket-key'] ?? '';
  return /^[+/\dA-Za-z]{22}==$/.test(key)
    ? undefined
    : refuse('Sec-WebSocket-Key', 'expected 16 bytes as Base64');
}

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

/** The part of `ws` that keeps a message until it is whole. */
type Receiving = {
  readonly _socket: Duplex;
  readonly _receiver: Writable & {
    readonly _maxPayload: number;
    readonly _bufferedBytes: number;
    readonly _errored: boolean;
    _buffers: readonly Buffer[];
    _fragments: readonly unknown[];
  };
};

/** Calls `came` with the bytes of each chunk, and with whether `ws` keeps something of a message that is not whole yet. */
export function watchChunks(socket: WebSocket, came: (bytes: number, keeps: boolean) => void): void {
  const { _socket: bytes, _receiver: receiver } = socket as unknown as Receiving;
  // `ws` has its own listener before this one, so it has taken the chunk already. After an error it takes none, and reads on.
  bytes.on('data', (chunk: Buffer) =>
    came(chunk.length, !receiver._errored && (receiver._bufferedBytes > 0 || receiver._fragments.length > 0)),
  );
  // By itself it would keep the chunks until the socket has closed.
  receiver.once('error', () => {
    receiver._buffers = [];
    receiver._fragments = [];
  });
}

/** Why `ws` closes a socket in the middle of a message that is well formed so far, by its own codes. */
const EXCESS: Readonly<Record<string, 'bytes' | 'parts'>> = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 'bytes',
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 'bytes',
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 'parts',
};

/**
 * Calls `tell` before `ws` closes a socket for a message of too many bytes or parts, so that something can be sent first. Frames that
 * cannot be read end their socket without it.
 */
export function watchExcess(socket: WebSocket, tell: (end: End) => void): void {
  const { _receiver: receiver } = socket as unknown as Receiving;
  receiver.prependListener('error', ({ code = '' }: NodeJS.ErrnoException) => {
    const excess = EXCESS[code];
    if (excess === 'bytes') tell({ code: 1009, refusal: tooLarge({ maxBodyBytes: receiver._maxPayload }) });
    else if (excess === 'parts') tell({ code: 1008, refusal: MANY_PARTS });
  });
}

const MANY_PARTS: Refusal = {
  code: 'invalid_request',
  message: `The event came in more than ${MOST_FRAGMENTS} frames, or in more than ${MOST_CHUNKS.holder} very small pieces. Send it in fewer.`,
};

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
