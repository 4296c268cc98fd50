import type { Readable } from 'node:stream';
import { BlockedAddressError } from '@presign/outbound';
import { type Dispatcher, errors } from 'undici';
import { type FlatHeaders, responseHeaders } from './headers.ts';

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
  | { readonly is: 'unanswered'; readonly why: Why };

/** Why no whole answer came; `left`: nobody wanted it any more. */
export type Why = 'timeout' | 'revoked' | 'left' | 'failure';

/** Cuts a call whose grant is revoked; `forward` says how. `isCut`: before there was anything to cut. */
export type Revocation = { cut: () => void; isCut?: boolean };

/** The holder's side of an answer. */
export type Receiver = {
  /** The upstream's status and headers, cleaned. */
  readonly head: (status: number, headers: FlatHeaders) => void;
  /** Takes the next bytes; false when no more may come before `whenDrained` says so. */
  readonly data: (chunk: Buffer) => boolean;
  /** Tells when everything has gone to the holder, or the holder has gone. */
  readonly whenClosed: (told: () => void) => void;
  readonly whenDrained: (resume: () => void) => void;
};

/** How far a call may go. */
export type Bounds = {
  /** How long the answer may take to begin. */
  readonly headersMs: number;
  /** How long the call may take in all. */
  readonly totalMs: number;
  /** `read on`: to its end, so that it is known what the call came to. */
  readonly whenHolderLeaves: 'read on' | 'stop';
};

/** How long an upstream may take to begin its answer; the official SDKs wait ten minutes too. */
export const HEADERS_TIMEOUT_MS = 600_000;

/** Sends a call and hands the answer on, chunk by chunk with back-pressure. */
export function forward(
  dispatcher: Dispatcher,
  call: UpstreamCall,
  receiver: Receiver,
  bounds: Bounds,
  revocation: Revocation,
): Promise<Ended> {
  return new Promise((resolve) => {
    const passing = new Passing(receiver, bounds, revocation, resolve);
    dispatcher.dispatch({ ...call, headersTimeout: bounds.headersMs, bodyTimeout: 0 }, passing);
  });
}

/** undici's view of one answer on its way to the holder. */
class Passing implements Dispatcher.DispatchHandler {
  readonly #receiver: Receiver;
  readonly #bounds: Bounds;
  readonly #revocation: Revocation;
  readonly #resolve: (ended: Ended) => void;
  #timer: NodeJS.Timeout | undefined;
  #sent = false;
  #ended = false;
  #status = 0;

  constructor(receiver: Receiver, bounds: Bounds, revocation: Revocation, resolve: (ended: Ended) => void) {
    this.#receiver = receiver;
    this.#bounds = bounds;
    this.#revocation = revocation;
    this.#resolve = resolve;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { totalMs, whenHolderLeaves } = this.#bounds;
    this.#timer = setTimeout(() => controller.abort(new errors.BodyTimeoutError()), totalMs);
    this.#revocation.cut = () => controller.abort(new RevokedError());
    // Whether the holder got everything or left: a paused answer must be read on, or stopped.
    this.#receiver.whenClosed(() => {
      if (whenHolderLeaves === 'read on') controller.resume();
      else if (!this.#ended) controller.abort(new LeftError());
    });
    if (this.#revocation.isCut) controller.abort(new RevokedError());
    // What was aborted up to here is never written.
    this.#sent = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // Informational answers (RFC 9110 §15.2) are not the answer.
    if (status < 200) return;
    this.#status = status;
    this.#receiver.head(status, responseHeaders((controller.rawHeaders ?? []) as Buffer[]));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#receiver.data(chunk)) return;
    controller.pause();
    this.#receiver.whenDrained(() => controller.resume());
  }

  onResponseEnd(): void {
    this.#end({ is: 'complete', status: this.#status });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#status !== 0) this.#end({ is: 'broken', status: this.#status });
    else if (this.#sent) this.#end({ is: 'unanswered', why: whyNot(error) });
    else this.#end({ is: 'unsent', blocked: error instanceof BlockedAddressError, code: codeOf(error) });
  }

  #end(ended: Ended): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#resolve(ended);
  }
}

/** `ENOTFOUND`, `ECONNREFUSED`…: for the operator's log. */
const codeOf = (error: Error) => ('code' in error && typeof error.code === 'string' ? error.code : undefined);

/** For the operator's log, when the guard refused an address. */
export const BLOCKED_HINT = 'the address is not public: only ALLOW_PRIVATE_UPSTREAMS=true lets it be called';

/** The grant was revoked while its call was under way. */
class RevokedError extends Error {}

/** The holder has left. */
class LeftError extends Error {}

function whyNot(error: Error): Why {
  if (error instanceof RevokedError) return 'revoked';
  if (error instanceof LeftError) return 'left';
  const isTimeout = error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError;
  return isTimeout ? 'timeout' : 'failure';
}
