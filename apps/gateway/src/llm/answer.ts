import type { ServerResponse } from 'node:http';
import { type AnswerHeaders, answerHeadersOf } from '@presign/providers';
import { boundOrigin } from '../grant/bind.ts';
import { breakOff } from '../http/cut.ts';
import {
  endWith,
  type FlatHeaders,
  headerOf,
  joined,
  ownHeaders,
  sendHead,
  whenDrained,
  withoutHeaders,
  writePart,
} from '../http/headers.ts';
import { isCoded, MaskedBody, NOT_SHOWN, Secrets } from '../http/hide-secrets.ts';
import { streamForm } from '../http/sse.ts';
import { isWhitespace } from '../json/abridge.ts';
import type { Admitted } from '../limits/admit.ts';
import { CHUNK_OVERHEAD_BYTES, type Reservation } from '../share/body-memory.ts';
import { keepsUse, surelyKeepsUse } from './judge-end.ts';
import { hasTokenInUrl } from './match.ts';
import { createMeter, type Meter, type Metered, type MeterOptions, UNMETERED } from './meter.ts';
import { type Call, givesBack } from './plan.ts';

/** How an answer is metered and delayed on its way to the holder. */
export type AnswerPlan = {
  /** Which of the provider's headers the holder gets. */
  readonly passes: AnswerHeaders;
  /** The gateway's own headers for an answer of this status. */
  readonly ownHeaders: (status: number) => FlatHeaders;
  /** Undefined: the endpoint is unknown, so its answer is not read. */
  readonly meter:
    | Pick<MeterOptions, 'spend' | 'request' | 'dropsUsageEvent' | 'onInput' | 'turn'>
    | undefined;
  /** The call asked for a stream. It is not always a stream of events: Gemini also streams one JSON array. */
  readonly streams: boolean;
  /** The last byte waits for `finish`, so that the holder sees the end only after settling. */
  readonly keepsLast: boolean;
  /** The memory for delayed bytes. The caller releases it. */
  readonly memory: Reservation;
};

/** The SDKs of several vendors obey it (`shouldRetry` in their client). */
const SHOULD_RETRY = 'x-should-retry';

/** Answers up to this size are delayed until their end, so that their headers can state the cost. */
const KEPT_BACK_MAX_BYTES = 256 * 1024;

/**
 * An answer that takes longer passes as it arrives, because load balancers close a connection that is idle for a minute. Some providers
 * send whitespace before a slow JSON answer, so that its connection is not idle (https://api-docs.deepseek.com/quick_start/rate_limit).
 */
const KEPT_BACK_MAX_MS = 5_000;

/** This many bytes of an answer are read after its holder has disconnected. No real answer is longer. */
const UNHEARD_MAX_BYTES = 64 * 1024 * 1024;

/** The holder's side of one answer. It passes the provider's bytes on and lets a meter read them. */
export class Answer {
  readonly #response: ServerResponse;
  readonly #plan: AnswerPlan;
  #status = 0;
  #headers: FlatHeaders = [];
  #meter: Meter = UNMETERED;
  /** The delayed bytes. Undefined once they are written. */
  #kept: Buffer[] | undefined;
  #keptBytes = 0;
  /** When the first of them arrived. */
  #keptAt = 0;
  /** How many bytes are still to come, or NaN when the provider did not say. */
  #left = Number.NaN;
  #last: Buffer | undefined;
  /** How many bytes arrived after the holder had disconnected. */
  #unheardBytes = 0;
  #secrets: readonly string[] = [];
  #masked: MaskedBody | undefined;

  constructor(response: ServerResponse, plan: AnswerPlan) {
    this.#response = response;
    this.#plan = plan;
  }

  get passes(): AnswerHeaders {
    return this.#plan.passes;
  }

  /** Masks these secrets in an error answer, because errors quote the key that they reject. */
  hide(secrets: readonly string[]): void {
    this.#secrets = secrets;
  }

  /** The provider's status and headers, cleaned. */
  head(status: number, headers: FlatHeaders): void {
    const contentType = headerOf(headers, 'content-type') ?? '';
    const { meter, keepsLast, streams, memory } = this.#plan;
    const isStream = streamForm(contentType) !== undefined || (streams && status < 400);
    this.#status = status;
    const contentEncoding = headerOf(headers, 'content-encoding') ?? '';
    this.#headers =
      meter?.dropsUsageEvent && isStream ? withoutHeaders(headers, ['content-length']) : headers;
    if (status >= 300) this.#maskError(contentEncoding);
    this.#left = Number(headerOf(this.#headers, 'content-length') ?? Number.NaN);
    if (meter) {
      const { spend, request, dropsUsageEvent, onInput, turn } = meter;
      const statedBytes = Number.isNaN(this.#left) ? undefined : this.#left;
      // biome-ignore format: one line
      this.#meter = createMeter({ spend, request, status, contentType, contentEncoding, dropsUsageEvent, keepsLast, statedBytes, onInput, memory, turn });
    }
    if (keepsLast && !isStream) this.#kept = [];
    else this.#writeHead([]);
  }

  #maskError(contentEncoding: string): void {
    const secrets = new Secrets(this.#secrets);
    this.#masked = new MaskedBody(contentEncoding, secrets, this.#plan.memory);
    this.#headers = this.#headers.map((each) => secrets.hide(each));
    if (isCoded(contentEncoding))
      this.#headers = withoutHeaders(this.#headers, ['content-encoding', 'content-length']);
  }

  /** Passes the next bytes. Returns false if the caller must wait for `whenDrained`. */
  data(chunk: Buffer): boolean {
    const metered = this.#meter.pass(chunk);
    const passed = metered && this.#masked ? this.#masked.push(metered) : metered;
    this.#left -= chunk.length;
    if (this.#response.destroyed) this.#unheardBytes += chunk.length + CHUNK_OVERHEAD_BYTES;
    // Chunks that wait for the meter must not pile up.
    const isReady = this.#meter.whenReady === undefined;
    if (passed === undefined || this.#response.destroyed) return isReady;
    if (this.#kept) return this.#keep(passed) && isReady;
    return this.#write(passed) && isReady;
  }

  /**
   * Whether the rest of the answer is read although its holder has disconnected. It may still determine the charge, and
   * an error does so at its end.
   */
  readsOn(): boolean {
    if (this.#unheardBytes > UNHEARD_MAX_BYTES) return false;
    return this.#status === 0 || this.#status >= 400 || this.#meter.isReading();
  }

  /** Calls back when everything is sent to the holder, or the holder has disconnected. */
  whenClosed(callback: () => void): void {
    // The holder may have disconnected while the call was admitted.
    if (this.#response.destroyed) callback();
    else this.#response.once('close', callback);
  }

  whenDrained(resume: () => void): void {
    const { whenReady = (ready) => ready() } = this.#meter;
    whenDrained(this.#response, () => whenReady(resume));
  }

  /** Returns, after the provider's last byte, the usage that the answer reported. */
  end(): Metered | Promise<Metered> {
    const metered = this.#meter.end();
    return this.#masked ? this.#endMasked(this.#masked, metered) : metered;
  }

  async #endMasked(masked: MaskedBody, ended: Metered | Promise<Metered>): Promise<Metered> {
    const metered = await ended;
    const last = metered.rest ? masked.push(metered.rest) : Buffer.alloc(0);
    return { ...metered, rest: Buffer.concat([last, (await masked.end()) ?? NOT_SHOWN]) };
  }

  /** Sends the delayed bytes. A head that is not sent yet gets the `late` headers, too. */
  finish({ rest }: Pick<Metered, 'rest'>, late: FlatHeaders): void {
    if (this.#response.destroyed) return;
    const kept = this.#kept;
    if (kept) this.#writeHead(late);
    const parts = [...(kept ?? []), this.#last, rest].filter((part) => part !== undefined);
    endWith(this.#response, joined(parts));
  }

  abort(): void {
    breakOff(this.#response);
  }

  #keep(bytes: Buffer): boolean {
    if (bytes.length === 0) return true;
    const isSlow = this.#isSlow(bytes);
    this.#kept?.push(bytes);
    const size = bytes.length + CHUNK_OVERHEAD_BYTES;
    this.#keptBytes += size;
    const hasRoom = this.#keptBytes <= KEPT_BACK_MAX_BYTES && this.#plan.memory.reserve(size);
    if (hasRoom && !isSlow) return true;
    const early = Buffer.concat(this.#kept ?? []);
    this.#kept = undefined;
    this.#writeHead([]);
    return this.#write(early);
  }

  /** Whether these bytes show that the answer will exceed the delay. */
  #isSlow(bytes: Buffer): boolean {
    if (this.#keptBytes > 0) return performance.now() - this.#keptAt > KEPT_BACK_MAX_MS;
    this.#keptAt = performance.now();
    return isWhitespace(bytes);
  }

  /** The last bytes are written together with the end of the answer: one write instead of two. */
  #write(bytes: Buffer): boolean {
    if (this.#left !== 0) return writePart(this.#response, bytes);
    this.#last = bytes;
    return true;
  }

  #writeHead(late: FlatHeaders): void {
    if (this.#response.destroyed) return;
    const own = this.#plan.ownHeaders(this.#status);
    const passed = own.includes(SHOULD_RETRY) ? withoutHeaders(this.#headers, [SHOULD_RETRY]) : this.#headers;
    this.#response.writeHead(this.#status, [...passed, ...own, ...late]);
    if (Number.isNaN(this.#left)) sendHead(this.#response);
  }
}

/** The plan for the answer of an admitted call. */
export function answerPlan(
  call: Call,
  admitted: Admitted,
  memory: Reservation,
  { onInput, turn }: Pick<MeterOptions, 'onInput' | 'turn'> = {},
): AnswerPlan {
  const { spend, dropsUsageEvent, streams, echoes } = call.plan;
  return {
    passes: answerHeadersOf(call.grant.provider),
    ownHeaders: (status) => callHeaders(call, admitted, status),
    meter: spend && { spend, request: { echoes }, dropsUsageEvent, onInput, turn },
    streams,
    keepsLast: givesBack(call.plan),
    memory,
  };
}

function callHeaders(
  { requestId, plan, grant, policy, incoming }: Call,
  admitted: Admitted,
  status: number,
): FlatHeaders {
  const { usesLeft, isReturnable, tokens } = admitted;
  const headers = ownHeaders(requestId, admitted.rateLimits, boundOrigin(policy, incoming.headers));
  // A cache in between must not give it to holders of other tokens, whatever the provider's headers say.
  if (!hasTokenInUrl(incoming.url ?? '')) headers.push('vary', 'authorization');
  if (usesLeft !== undefined) {
    // The head is sent before the error's body is read, so it does not count a use that only the body returns.
    const kept = !isReturnable || keepsUse(grant.provider.refusals, status, undefined);
    headers.push('x-presign-uses-remaining', String(kept ? usesLeft : usesLeft + 1));
    const isLast = usesLeft === 0 && (!isReturnable || surelyKeepsUse(grant.provider.refusals, status));
    if (status >= 400 && isLast) headers.push(SHOULD_RETRY, 'false');
  }
  if (plan.hold && tokens < plan.hold.askedTokens) headers.push('x-presign-max-tokens', String(tokens));
  return headers;
}
