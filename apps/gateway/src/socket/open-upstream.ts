import { createHash, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { BlockedAddressError } from '@presign/outbound';
import type { Dispatcher } from 'undici';
import { isOfHost } from '../http/forward.ts';
import type { FlatHeaders } from '../http/headers.ts';
import type { Hosts } from '../share/hosts.ts';

/** A handshake to send to an upstream. */
export type Handshake = {
  readonly origin: string;
  readonly path: string;
  readonly headers: FlatHeaders;
  /** The offered subprotocols. */
  readonly protocols: readonly string[];
  /** Identifies the upstream among the hosts that refuse connections. */
  readonly host: string;
};

export type Opened =
  | {
      readonly is: 'open';
      readonly socket: Duplex;
      readonly headers: IncomingHttpHeaders;
      readonly protocol: string | undefined;
    }
  /** It answered like a server without sockets. `body`: the beginning of the answer. */
  | {
      readonly is: 'answered';
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: Buffer;
    }
  | { readonly is: 'failed'; readonly blocked: boolean };

/** How long an upstream has to answer. */
const HANDSHAKE_MS = 30_000;
/** This many bytes of a refusal are passed to the holder. */
const REFUSAL_MAX_BYTES = 64 * 1024;
/** RFC 6455 §1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Opens a socket at an upstream through the common outbound path, with its guard, TLS and proxy. */
export function openUpstream(
  { dispatcher, hosts }: { readonly dispatcher: Dispatcher; readonly hosts: Hosts },
  { origin, path, headers, protocols, host }: Handshake,
): Promise<Opened> {
  const key = randomBytes(16).toString('base64');
  const own = ['sec-websocket-version', '13', 'sec-websocket-key', key];
  if (protocols.length > 0) own.push('sec-websocket-protocol', protocols.join(', '));
  hosts.tries(host);
  return new Promise((resolve) => {
    const opening = new Opening((opened) => resolve(judged(opened, key, protocols)), {
      connected: () => hosts.reached(host),
      failed: (error) => {
        if (isOfHost(error)) hosts.failed(host);
      },
    });
    dispatcher.dispatch(
      {
        origin,
        path,
        method: 'GET',
        upgrade: 'websocket',
        headers: [...headers, ...own],
        headersTimeout: HANDSHAKE_MS,
        bodyTimeout: HANDSHAKE_MS,
      },
      opening,
    );
  });
}

type Answered =
  | Exclude<Opened, { is: 'open' }>
  | { readonly is: 'open'; readonly socket: Duplex; readonly headers: IncomingHttpHeaders };

/** The client's checks of RFC 6455 §4.1. */
function judged(opened: Answered, key: string, offered: readonly string[]): Opened {
  if (opened.is !== 'open') return opened;
  const { headers, socket } = opened;
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  const protocol = headers['sec-websocket-protocol'];
  const isRight =
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-accept'] === accept &&
    headers['sec-websocket-extensions'] === undefined &&
    (protocol === undefined || offered.includes(protocol));
  if (isRight) return { ...opened, protocol };
  socket.destroy();
  return { is: 'failed', blocked: false };
}

type Heard = { readonly connected: () => void; readonly failed: (error: Error) => void };

/** undici's view of one handshake. */
class Opening implements Dispatcher.DispatchHandler {
  readonly #ended: (opened: Answered) => void;
  readonly #heard: Heard;
  #isConnected = false;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  readonly #body: Buffer[] = [];
  #bytes = 0;

  constructor(ended: (opened: Answered) => void, heard: Heard) {
    this.#ended = ended;
    this.#heard = heard;
  }

  onRequestStart(): void {
    this.#isConnected = true;
    this.#heard.connected();
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    _status: number,
    headers: IncomingHttpHeaders,
    socket: Duplex,
  ): void {
    this.#ended({ is: 'open', socket, headers });
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= REFUSAL_MAX_BYTES) this.#body.push(chunk);
    else controller.abort(new Error('the refusal is too long'));
  }

  onResponseEnd(): void {
    this.#answered();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (!this.#isConnected) this.#heard.failed(error);
    if (this.#status !== 0) this.#answered();
    else this.#ended({ is: 'failed', blocked: error instanceof BlockedAddressError });
  }

  #answered(): void {
    this.#ended({
      is: 'answered',
      status: this.#status,
      headers: this.#headers,
      body: Buffer.concat(this.#body),
    });
  }
}
