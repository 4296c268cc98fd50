import type { ServerResponse } from 'node:http';
import { type FlatHeaders, headerOf, withoutHeaders } from '../http/flat-headers.ts';
import { sendHead } from '../http/send-head.ts';
import { createMeter, type Meter, type Metered, type MeterOptions, UNMETERED } from './meter.ts';

/** How an answer is looked at and kept back on its way. */
export type AnswerPlan = {
  /** Headers of our own for an answer of this status. */
  readonly ownHeaders: (status: number) => FlatHeaders;
  /** Undefined: nothing is known of the answer, so nothing is read from it. */
  readonly meter: Pick<MeterOptions, 'spend' | 'dropsUsageEvent'> | undefined;
  /** The call asked for a stream, which need not be one of events (Gemini's is a JSON array). */
  readonly streams: boolean;
  /** The last byte waits for `finish`, so that the holder learns of the end after settling. */
  readonly keepsLast: boolean;
};

/** Whole answers up to this size are kept back to their end, so that their headers can tell what they cost. */
const KEPT_BACK_MAX_BYTES = 256 * 1024;

/** Node writes so much without asking for memory. */
const IN_ONE_PIECE_BYTES = 8 * 1024;

/** The holder's side of one answer: passes the provider's bytes on, and lets a meter look at them. */
export class Answer {
  readonly #response: ServerResponse;
  readonly #plan: AnswerPlan;
  #status = 0;
  #headers: FlatHeaders = [];
  #meter: Meter = UNMETERED;
  /** Bytes kept back; undefined once they have gone. */
  #kept: Buffer[] | undefined;
  #keptBytes = 0;
  /** Bytes still to come when the provider said how many; NaN when it did not. */
  #left = Number.NaN;
  #last: Buffer | undefined;

  constructor(response: ServerResponse, plan: AnswerPlan) {
    this.#response = response;
    this.#plan = plan;
  }

  /** The provider's status and headers, cleaned. */
  head(status: number, headers: FlatHeaders): void {
    const contentType = headerOf(headers, 'content-type') ?? '';
    const { meter, keepsLast, streams } = this.#plan;
    const isStream = /^text\/event-stream\b/i.test(contentType) || (streams && status < 400);
    this.#status = status;
    this.#headers =
      meter?.dropsUsageEvent && isStream ? withoutHeaders(headers, ['content-length']) : headers;
    this.#left = Number(headerOf(this.#headers, 'content-length') ?? Number.NaN);
    if (meter) {
      const contentEncoding = headerOf(headers, 'content-encoding') ?? '';
      this.#meter = createMeter({ ...meter, status, contentType, contentEncoding, keepsLast });
    }
    if (keepsLast && !isStream) this.#kept = [];
    else this.#writeHead([]);
  }

  /** Passes the next bytes; false when the holder must be waited for (`whenDrained`). */
  data(chunk: Buffer): boolean {
    const passed = this.#meter.pass(chunk);
    this.#left -= chunk.length;
    if (passed === undefined || this.#response.destroyed) return true;
    if (this.#kept) return this.#keep(passed);
    if (this.#left === 0) {
      // Leaves with the end of the answer: one write instead of two.
      this.#last = passed;
      return true;
    }
    return this.#response.write(passed);
  }

  /** Told when everything has gone to the holder, or the holder has gone. */
  whenClosed(told: () => void): void {
    this.#response.once('close', told);
  }

  whenDrained(resume: () => void): void {
    this.#response.once('drain', resume);
  }

  /** After the provider's last byte: what the answer said was used. */
  end(): Promise<Metered> {
    return this.#meter.end();
  }

  /** Sends what is kept back, with headers that are known only now if the head has not left. */
  finish({ rest }: Pick<Metered, 'rest'>, late: FlatHeaders): void {
    if (this.#response.destroyed) return;
    const kept = this.#kept;
    if (kept) this.#writeHead(late);
    const parts = [...(kept ?? []), this.#last, rest].filter((part) => part !== undefined);
    const whole = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    // A string leaves in one piece with the head, which costs less than a vector of two.
    if (whole && whole.length <= IN_ONE_PIECE_BYTES) this.#response.end(whole.toString('latin1'), 'latin1');
    else this.#response.end(whole);
  }

  /** The answer broke off: what the holder has is not whole, and must not look so. */
  abort(): void {
    this.#response.destroy();
  }

  #keep(bytes: Buffer): boolean {
    this.#kept?.push(bytes);
    this.#keptBytes += bytes.length;
    if (this.#keptBytes <= KEPT_BACK_MAX_BYTES) return true;
    const early = Buffer.concat(this.#kept ?? []);
    this.#kept = undefined;
    this.#writeHead([]);
    if (this.#left === 0) {
      this.#last = early;
      return true;
    }
    return this.#response.write(early);
  }

  #writeHead(late: FlatHeaders): void {
    if (this.#response.destroyed) return;
    this.#response.writeHead(this.#status, [
      ...this.#headers,
      ...this.#plan.ownHeaders(this.#status),
      ...late,
    ]);
    if (Number.isNaN(this.#left)) sendHead(this.#response);
  }
}
