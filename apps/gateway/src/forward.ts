import type { Readable } from 'node:stream';
import { type Dispatcher, errors } from 'undici';
import type { Answer } from './answer.ts';
import type { FlatHeaders } from './flat-headers.ts';
import { BlockedAddressError } from './guard-address.ts';
import { responseHeaders } from './headers.ts';

/** What is sent to a provider. */
export type UpstreamCall = {
  readonly origin: string;
  readonly path: string;
  readonly method: string;
  readonly headers: FlatHeaders;
  readonly body: Readable | Buffer | null;
};

/** How a call ended. */
export type Ended =
  /** The provider answered in full; what the answer keeps back is still to be sent. */
  | { readonly is: 'complete'; readonly status: number }
  /** The provider's answer broke off, or our own timeout cut it. */
  | { readonly is: 'broken'; readonly status: number }
  /** The provider surely never got the call; nothing is written yet. */
  | { readonly is: 'unsent'; readonly blocked: boolean; readonly code: string | undefined }
  /** The call went out, no answer came; nothing is written yet. */
  | { readonly is: 'unanswered'; readonly why: 'timeout' | 'revoked' | 'failure' };

/** Cuts a call whose grant is revoked; `forward` says how. */
export type Revocation = { cut: () => void };

/** How long a provider may take to begin its answer; the official SDKs wait ten minutes too. */
const HEADERS_TIMEOUT_MS = 600_000;

/**
 * Sends a call and hands the answer on, chunk by chunk with back-pressure. When the holder leaves, the
 * provider's answer is read to its end all the same, so that what it came to is known.
 */
export function forward(
  dispatcher: Dispatcher,
  call: UpstreamCall,
  answer: Answer,
  timeoutMs: number,
  revocation: Revocation,
): Promise<Ended> {
  return new Promise((resolve) => {
    const passing = new Passing(answer, timeoutMs, revocation, resolve);
    dispatcher.dispatch(
      { ...call, headersTimeout: Math.min(HEADERS_TIMEOUT_MS, timeoutMs), bodyTimeout: 0 },
      passing,
    );
  });
}

/** undici's view of one answer on its way to the holder. */
class Passing implements Dispatcher.DispatchHandler {
  readonly #answer: Answer;
  readonly #timeoutMs: number;
  readonly #revocation: Revocation;
  readonly #resolve: (ended: Ended) => void;
  #timer: NodeJS.Timeout | undefined;
  #sent = false;
  #status = 0;

  constructor(answer: Answer, timeoutMs: number, revocation: Revocation, resolve: (ended: Ended) => void) {
    this.#answer = answer;
    this.#timeoutMs = timeoutMs;
    this.#revocation = revocation;
    this.#resolve = resolve;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#sent = true;
    this.#timer = setTimeout(() => controller.abort(new errors.BodyTimeoutError()), this.#timeoutMs);
    this.#revocation.cut = () => controller.abort(new RevokedError());
    // Whether the holder got everything or left: a paused answer must be read on.
    this.#answer.whenClosed(() => controller.resume());
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // Informational answers (RFC 9110 §15.2) are not the answer.
    if (status < 200) return;
    this.#status = status;
    this.#answer.head(status, responseHeaders((controller.rawHeaders ?? []) as Buffer[]));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#answer.data(chunk)) return;
    controller.pause();
    this.#answer.whenDrained(() => controller.resume());
  }

  onResponseEnd(): void {
    clearTimeout(this.#timer);
    this.#resolve({ is: 'complete', status: this.#status });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    clearTimeout(this.#timer);
    if (this.#status !== 0) this.#resolve({ is: 'broken', status: this.#status });
    else if (this.#sent) this.#resolve({ is: 'unanswered', why: whyNot(error) });
    else this.#resolve({ is: 'unsent', blocked: error instanceof BlockedAddressError, code: codeOf(error) });
  }
}

/** `ENOTFOUND`, `ECONNREFUSED`…: for the operator's log. */
const codeOf = (error: Error) => ('code' in error && typeof error.code === 'string' ? error.code : undefined);

/** The grant was revoked while its call was under way. */
class RevokedError extends Error {}

function whyNot(error: Error): 'timeout' | 'revoked' | 'failure' {
  if (error instanceof RevokedError) return 'revoked';
  const isTimeout = error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError;
  return isTimeout ? 'timeout' : 'failure';
}
