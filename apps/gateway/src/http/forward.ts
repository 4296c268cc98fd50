import type { Readable } from 'node:stream';
import { BlockedAddressError } from '@presign/outbound';
import type { AnswerHeaders } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { type Dispatcher, errors } from 'undici';
import type { Hosts } from '../share/hosts.ts';
import type { Turn } from '../share/turns.ts';
import { type CutReason, type Cutter, cutReason } from './cut.ts';
import { type FlatHeaders, responseHeaders, withoutHeaders } from './headers.ts';

/** A request to an upstream. */
export type UpstreamCall = {
  readonly origin: string;
  readonly path: string;
  readonly method: string;
  readonly headers: FlatHeaders;
  readonly body: Readable | Buffer | null;
  /** Identifies the upstream among the hosts that refuse connections. */
  readonly host: string;
  /** Called at the first byte of the answer's body, and at its end. */
  readonly answered?: () => void;
};

/** How a call ended. */
export type Ended =
  /** The upstream answered in full. The receiver still has to send the bytes that it kept back. */
  | { readonly is: 'complete'; readonly status: number }
  /** The answer began and did not end. */
  | { readonly is: 'broken'; readonly status: number; readonly why: Why }
  /**
   * The upstream certainly never got the call. Nothing is written yet. `cut`: the gateway ended the call itself, or the holder of its socket left. `isBounded`: its holder
   * ended it, or it was sent before, so the bound on refunds applies. `refusal`: the end of its socket kept a turn from being sent.
   */
  | {
      readonly is: 'unsent';
      readonly isBounded: boolean;
      readonly cut?: CutReason | 'left' | undefined;
      readonly blocked: boolean;
      readonly code: string | undefined;
      readonly refusal?: Refusal | undefined;
    }
  /** The call went out, and no answer came. Nothing is written yet. */
  | { readonly is: 'unanswered'; readonly why: Why };

/** Why an answer is missing or incomplete. `left`: the holder closed the connection. */
export type Why = 'timeout' | 'left' | 'failure' | CutReason;

/** The holder's side of an answer. */
export type Receiver = {
  /** Which of the upstream's headers the holder gets. */
  readonly passes: AnswerHeaders;
  /** The upstream's status and headers, cleaned. */
  readonly head: (status: number, headers: FlatHeaders) => void;
  /** Takes the next bytes. Returns false if the caller must wait for `whenDrained`. */
  readonly data: (chunk: Buffer) => boolean;
  /** Calls back when everything is sent to the holder, or the holder has disconnected. */
  readonly whenClosed: (callback: () => void) => void;
  readonly whenDrained: (resume: () => void) => void;
};

/** The limits of one call. */
export type Bounds = {
  /** How long the answer may take to begin. */
  readonly headersMs: number;
  /** How long the call may take in all. */
  readonly totalMs: number;
  /** Whether the rest of an answer is read although its holder has disconnected. Checked for each chunk. */
  readonly readsOn: () => boolean;
  /** Waits for a turn to read, so that one answer does not delay other URLs. */
  readonly turn: Turn;
};

/** The times of an upstream, in ms. For a call that is sent twice, they include both attempts. */
export type UpstreamTimes = {
  /** From the call's start to the end of its answer. */
  upstreamMs: number;
  /** `performance.now()` at the first byte of a body; 0 before. */
  firstByteAt: number;
};

/** The cost of passing a chunk, in addition to its bytes. An answer may arrive in chunks of one byte, so this cost is counted. */
const CHUNK_BYTES = 512;
/** An answer up to this size takes no turn, because the turn would cost more than the answer. */
const UNCOUNTED_BYTES = 16 * 1024;

/** How long an upstream may take to begin its answer. The official SDKs of LLM providers also wait ten minutes. */
export const HEADERS_TIMEOUT_MS = 600_000;

/**
 * Sends a call and hands the answer on, chunk by chunk with back-pressure.
 * @param cutter ends the call
 * @param times gets the upstream's times
 */
export function forward(
  { dispatcher, hosts }: { readonly dispatcher: Dispatcher; readonly hosts: Hosts },
  { origin, path, method, headers, body, host, answered }: UpstreamCall,
  receiver: Receiver,
  bounds: Bounds,
  cutter: Cutter,
  times: UpstreamTimes = { upstreamMs: 0, firstByteAt: 0 },
): Promise<Ended> {
  return new Promise((resolve) => {
    const passing = new Passing(receiver, bounds, cutter, times, {
      connected: () => hosts.reached(host),
      answered: () => answered?.(),
      ended: (ended, error) => {
        const isAborted = body !== null && 'errored' in body && (body.errored !== null || body.destroyed);
        // An upload that its holder aborts says nothing about the host.
        if (error && !isAborted && isOfHost(error)) hosts.failed(host);
        resolve(ended.is === 'unsent' && isAborted ? { ...ended, isBounded: true } : ended);
      },
    });
    hosts.tries(host);
    const headersTimeout = bounds.headersMs;
    // A stream may be silent for long. A timer of `Passing` bounds the whole call.
    dispatcher.dispatch({ origin, path, method, headers, body, headersTimeout, bodyTimeout: 0 }, passing);
  });
}

/** undici's errors before a connection exists that are caused by the host or by the proxy in front of it. */
const OF_HOST: ReadonlySet<string> = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_ABORTED',
  'UND_ERR_SOCKET',
]);
/** This machine has no port, file or memory left for a connection. */
const OF_MACHINE: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']);

/** Whether a call without a connection failed because of its host: name, network, refusal or TLS. Other errors belong to this gateway. */
export function isOfHost(error: Error): boolean {
  const code = codeOf(error);
  if (code === undefined || isBlocked(error)) return false;
  return error instanceof errors.UndiciError ? OF_HOST.has(code) : !OF_MACHINE.has(code);
}

/** Called when a call has its connection, and when it ends. `error`: it got no connection. */
type Heard = {
  readonly connected: () => void;
  /** The first byte of a body has come, or its end. */
  readonly answered: () => void;
  readonly ended: (ended: Ended, error?: Error) => void;
};

/** undici's view of one answer on its way to the holder. */
class Passing implements Dispatcher.DispatchHandler {
  /** undici parses no headers for it, see ADR 8. */
  readonly readsRawHeaders = true;
  readonly #receiver: Receiver;
  readonly #bounds: Bounds;
  readonly #cutter: Cutter;
  readonly #times: UpstreamTimes;
  readonly #beganAt = performance.now();
  readonly #heard: Heard;
  #timer: NodeJS.Timeout | undefined;
  #connected = false;
  #sent = false;
  #ended = false;
  #hasLeft = false;
  #status = 0;
  #uncounted = 0;
  #pauses = 0;

  constructor(receiver: Receiver, bounds: Bounds, cutter: Cutter, times: UpstreamTimes, heard: Heard) {
    this.#receiver = receiver;
    this.#bounds = bounds;
    this.#cutter = cutter;
    this.#times = times;
    this.#heard = heard;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#connected = true;
    this.#heard.connected();
    this.#timer = setTimeout(() => controller.abort(new errors.BodyTimeoutError()), this.#bounds.totalMs);
    // A paused answer resumes when the holder has received everything or has disconnected. It is then read to its end,
    // or stopped.
    this.#receiver.whenClosed(() => {
      this.#hasLeft = true;
      if (!this.#stops(controller)) controller.resume();
    });
    this.#cutter.watch((error) => controller.abort(error));
    // A call that is aborted before this point is never sent.
    this.#sent = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    // Informational answers (RFC 9110 §15.2) are not the answer.
    if (status < 200) return;
    this.#status = status;
    const raw = (controller.rawHeaders ?? []) as Buffer[];
    const headers = responseHeaders(raw, this.#receiver.passes);
    // A 204 must not state a length (RFC 9110 §8.6). undici's `request` waits for the stated length of a 304.
    const hasNoBody = status === 204 || status === 304;
    this.#receiver.head(status, hasNoBody ? withoutHeaders(headers, ['content-length']) : headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#times.firstByteAt === 0) {
      this.#times.firstByteAt = performance.now();
      this.#heard.answered();
    }
    const isReady = this.#receiver.data(chunk);
    if (this.#stops(controller)) return;
    const isMyTurn = this.#takeTurn(chunk);
    if (isReady && isMyTurn) return;
    controller.pause();
    const pause = ++this.#pauses;
    const resume = () => {
      if (pause === this.#pauses) controller.resume();
    };
    const inTurn = isMyTurn ? resume : () => this.#bounds.turn.next(resume);
    if (isReady) inTurn();
    else this.#receiver.whenDrained(inTurn);
  }

  /** Ends an answer that is no longer needed. Returns whether it did. */
  #stops(controller: Dispatcher.DispatchController): boolean {
    if (this.#ended || !this.#hasLeft || this.#bounds.readsOn()) return false;
    controller.abort(new LeftError());
    return true;
  }

  #takeTurn(chunk: Buffer): boolean {
    this.#uncounted += chunk.length + CHUNK_BYTES;
    if (this.#uncounted <= UNCOUNTED_BYTES) return true;
    const bytes = this.#uncounted;
    this.#uncounted = 0;
    return this.#bounds.turn.take(bytes);
  }

  onResponseEnd(): void {
    this.#heard.answered();
    this.#end({ is: 'complete', status: this.#status });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#status !== 0) this.#end({ is: 'broken', status: this.#status, why: whyNot(error) });
    else if (this.#sent) this.#end({ is: 'unanswered', why: whyNot(error) });
    else this.#end(this.#unsent(error), this.#connected ? undefined : error);
  }

  #unsent(error: Error): Ended {
    const why = { cut: cutReason(error), blocked: isBlocked(error), code: codeOf(error) };
    return { is: 'unsent', isBounded: error instanceof LeftError, ...why };
  }

  #end(ended: Ended, error?: Error): void {
    this.#ended = true;
    this.#times.upstreamMs += performance.now() - this.#beganAt;
    clearTimeout(this.#timer);
    this.#cutter.watch(undefined);
    this.#heard.ended(ended, error);
  }
}

const isBlocked = (error: Error) => error instanceof BlockedAddressError;

/** `ENOTFOUND`, `ECONNREFUSED`…: for the operator's log. */
const codeOf = (error: Error) => ('code' in error && typeof error.code === 'string' ? error.code : undefined);

/** For the operator's log, when the guard refused an address. */
export const BLOCKED_HINT = 'the address is not public: only ALLOW_PRIVATE_UPSTREAMS=true lets it be called';

/** The holder has left. */
class LeftError extends Error {}

function whyNot(error: Error): Why {
  if (error instanceof LeftError) return 'left';
  const isTimeout = error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError;
  return cutReason(error) ?? (isTimeout ? 'timeout' : 'failure');
}
