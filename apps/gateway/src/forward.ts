import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Dispatcher, errors } from 'undici';
import { BlockedAddressError } from './guard-address.ts';
import { type FlatHeaders, responseHeaders } from './headers.ts';

/** What is sent to a provider. */
export type UpstreamCall = {
  readonly origin: string;
  readonly path: string;
  readonly method: string;
  readonly headers: FlatHeaders;
  readonly body: IncomingMessage | Buffer | null;
};

/** How a call ended. */
export type Ended =
  /** The provider answered in full. */
  | { readonly is: 'complete'; readonly status: number }
  /** The provider's answer broke off, or our own timeout cut it. */
  | { readonly is: 'broken'; readonly status: number }
  /** The provider surely never got the call; nothing is written yet. */
  | { readonly is: 'unsent'; readonly blocked: boolean }
  /** The call went out, no answer came; nothing is written yet. */
  | { readonly is: 'unanswered'; readonly timedOut: boolean };

/** How long a provider may take to begin its answer; the official SDKs wait ten minutes too. */
const HEADERS_TIMEOUT_MS = 600_000;

/**
 * Sends a call and passes the answer to the holder, chunk by chunk with back-pressure, unchanged. When the
 * holder leaves, the answer is read to its end all the same, so that what it came to is known.
 * @param extra headers of our own for the answer
 */
export function forward(
  dispatcher: Dispatcher,
  call: UpstreamCall,
  response: ServerResponse,
  extra: FlatHeaders,
  timeoutMs: number,
): Promise<Ended> {
  return new Promise((resolve) => {
    const passing = new Passing(response, extra, timeoutMs, resolve);
    dispatcher.dispatch(
      { ...call, headersTimeout: Math.min(HEADERS_TIMEOUT_MS, timeoutMs), bodyTimeout: 0 },
      passing,
    );
  });
}

/** undici's view of one answer on its way to the holder. */
class Passing implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;
  readonly #extra: FlatHeaders;
  readonly #resolve: (ended: Ended) => void;
  readonly #timeoutMs: number;
  #timer: NodeJS.Timeout | undefined;
  #sent = false;
  #status = 0;
  /** Bytes still to come when the provider said how many; NaN when it did not. */
  #left = Number.NaN;
  /** The last chunk, kept back so that it leaves with the end of the answer: one write instead of two. */
  #last: Buffer | undefined;

  constructor(
    response: ServerResponse,
    extra: FlatHeaders,
    timeoutMs: number,
    resolve: (ended: Ended) => void,
  ) {
    this.#response = response;
    this.#extra = extra;
    this.#timeoutMs = timeoutMs;
    this.#resolve = resolve;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#sent = true;
    this.#timer = setTimeout(() => controller.abort(new errors.BodyTimeoutError()), this.#timeoutMs);
    // `close` comes whether the holder got everything or left: a paused answer must be read on.
    this.#response.once('close', () => controller.resume());
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // Informational answers (RFC 9110 §15.2) are not the answer.
    if (status < 200) return;
    this.#status = status;
    const headers = responseHeaders((controller.rawHeaders ?? []) as Buffer[]);
    this.#left = contentLength(headers);
    if (this.#response.destroyed) return;
    this.#response.writeHead(status, [...headers, ...this.#extra]);
    // A stream's headers must not wait for its first chunk.
    if (Number.isNaN(this.#left)) this.#response.flushHeaders();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.destroyed) return;
    this.#left -= chunk.length;
    if (this.#left === 0) {
      this.#last = chunk;
      return;
    }
    if (this.#response.write(chunk)) return;
    controller.pause();
    this.#response.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer);
    if (!this.#response.destroyed) this.#response.end(this.#last);
    this.#resolve({ is: 'complete', status: this.#status });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    clearTimeout(this.#timer);
    if (this.#status !== 0) {
      // What the holder has is not whole, and must not look so.
      this.#response.destroy();
      this.#resolve({ is: 'broken', status: this.#status });
    } else if (this.#sent) {
      this.#resolve({ is: 'unanswered', timedOut: isTimeout(error) });
    } else {
      this.#resolve({ is: 'unsent', blocked: error instanceof BlockedAddressError });
    }
  }
}

const isTimeout = (error: Error) =>
  error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError;

function contentLength(headers: FlatHeaders): number {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]?.toLowerCase() === 'content-length') return Number(headers[i + 1]);
  }
  return Number.NaN;
}
