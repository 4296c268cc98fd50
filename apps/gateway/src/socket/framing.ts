import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Duplex, Writable } from 'node:stream';
import type { Refusal } from '@presign/schema';
import { WebSocket, WebSocketServer } from 'ws';
import { tooLarge } from '../http/body.ts';
import type { End } from './dialects/end.ts';

/** The most frames of a message. Each frame is stored with its overhead until the last has arrived. */
const MOST_FRAGMENTS = 256;
/**
 * The most reads of a message. Beyond it the message arrives in very small chunks, and each takes a kilobyte of memory until the message is
 * complete. A holder is untrusted and has fewer: 1 MB in segments of 536 bytes, the size that every network supports.
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
  if (!/^[+/\dA-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? ''))
    return refuse('Sec-WebSocket-Key', 'expected 16 bytes as Base64');
  const names = protocolsIn(headers);
  const areNames = names.every((name) => TOKEN.test(name)) && new Set(names).size === names.length;
  return areNames ? undefined : refuse('Sec-WebSocket-Protocol', 'expected names, each of them once');
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;

const protocolsIn = ({ 'sec-websocket-protocol': list }: IncomingHttpHeaders): string[] =>
  list === undefined ? [] : list.split(',').map((name) => name.trim());

type Accepting = {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  /** The header lines of the answer. */
  readonly headers: readonly string[];
  /** The subprotocol. Undefined: none. */
  readonly protocol: string | undefined;
};

/**
 * Accepts a holder's handshake, without compression, because a frame of a few bytes could expand endlessly.
 * @returns undefined for a malformed handshake, which is then answered
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

/** A browser can send a key only in a subprotocol. */
const KEY_BEARING = /^openai-(?:insecure-api-key|organization|project)\./i;

/** The subprotocols that a handshake offers, without keys. */
export const offeredProtocols = ({ headers }: IncomingMessage): string[] =>
  protocolsIn(headers).filter((name) => !KEY_BEARING.test(name));

/** The client part of `ws`. The gateway does the handshake itself, because all outbound connections use one path. */
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

/** The part of `ws` that stores a message until it is complete. */
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

/** Calls `came` with the bytes of each chunk, and with whether `ws` still stores part of an incomplete message. */
export function watchChunks(socket: WebSocket, came: (bytes: number, keeps: boolean) => void): void {
  const { _socket: bytes, _receiver: receiver } = socket as unknown as Receiving;
  // The listener of `ws` runs before this one, so `ws` already has the chunk. After an error it ignores chunks and keeps reading.
  bytes.on('data', (chunk: Buffer) =>
    came(chunk.length, !receiver._errored && (receiver._bufferedBytes > 0 || receiver._fragments.length > 0)),
  );
  // Otherwise it would keep the chunks until the socket has closed.
  receiver.once('error', () => {
    receiver._buffers = [];
    receiver._fragments = [];
  });
}

/** The codes with which `ws` closes a socket in the middle of a message that is well-formed so far. */
const EXCESS: Readonly<Record<string, 'bytes' | 'parts'>> = {
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 'bytes',
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 'bytes',
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 'parts',
};

/**
 * Calls `tell` before `ws` closes a socket for a message of too many bytes or parts, so that an error can be sent first. Unreadable frames
 * end their socket without this call.
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

/** A close frame has room for a reason of 123 bytes. */
const REASON_MAX_BYTES = 123;

/** Closes a socket. */
export function closeWith(socket: WebSocket, code: number, reason = ''): void {
  if (socket.readyState !== WebSocket.OPEN) return;
  const text = Buffer.byteLength(reason) > REASON_MAX_BYTES ? '' : reason;
  if (code === 1005) socket.close();
  else socket.close(sendable(code) ? code : 1011, text);
}
