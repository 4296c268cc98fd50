import type { ServerResponse } from 'node:http';
import type { Reservation } from '../http/body-memory.ts';
import type { Receiver } from '../http/forward.ts';
import { type FlatHeaders, headerOf, sendHead, withoutHeaders } from '../http/headers.ts';
import { EventSplitter, readEvent } from '../http/sse.ts';
import { hideSecrets } from './hide-secrets.ts';
import { type Amount, NOTHING, type UnrunRequests } from './refund.ts';

/** What is done to an answer on its way to the holder. */
export type McpAnswerPlan = {
  /** Headers of ours. `back` is what is given back, as far as it is known when the head leaves. */
  readonly ownHeaders: (back: Amount) => FlatHeaders;
  /** A session id as the holder gets it. */
  readonly sealSession: (id: string) => string;
  /**
   * Of a GET: takes the older transport's `endpoint` event, and gives the event that the holder gets instead;
   * undefined when the endpoint is none of the server's own.
   */
  readonly openEndpoint: ((data: string) => Promise<Buffer | undefined>) | undefined;
  /** Of a charged POST: notes which requests did not run, and gives their charge back. */
  readonly unrun: UnrunRequests | undefined;
  /** Room for events that are not whole yet. */
  readonly held: Reservation;
  /** An event was too long to be waited for: from now on nothing can be told between events. */
  readonly becomesOpaque: () => void;
  readonly giveBack: () => Promise<void>;
};

/** Answers with which a server refuses our credential: not the holder's business, whom a 401 would send to log in. */
export const refusesCredential = (status: number): boolean => status === 401 || status === 403;

/** Not followed, nor passed on: servers redirect to what they were asked, a key in its query included. */
export const redirects = (status: number): boolean => status >= 300 && status < 400;

/** Answers in whose place the holder gets one of ours. */
export const isKeptBack = (status: number): boolean => refusesCredential(status) || redirects(status);

/**
 * An event is waited for up to this many bytes, and as long as what all calls hold leaves room; the rest of a stream
 * with a longer one passes as it comes.
 */
const EVENT_MAX_BYTES = 16 * 1024 * 1024;
/** Taken of what calls may hold at a time; what is not whole of shorter events is not counted. */
const EVENT_STEP_BYTES = 64 * 1024;
/** A charged POST's answer that is no stream is kept up to this size, for a charge to be given back before it ends. */
const KEPT_MAX_BYTES = 1024 * 1024;
/** Well below the minute after which common proxies drop a silent connection. */
const KEEP_ALIVE_MS = 15_000;
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');

/** The holder's side of an MCP answer: one message as JSON, or a stream of events. */
export class McpAnswer implements Receiver {
  readonly #response: ServerResponse;
  readonly #plan: McpAnswerPlan;
  #status = 0;
  #headers: FlatHeaders = [];
  #discards = false;
  #events: EventSplitter | undefined;
  #isStream = false;
  #kept: Buffer[] | undefined;
  #keptBytes = 0;
  #heldBytes = 0;
  #secrets: readonly string[] = [];
  #busy: Promise<void> | undefined;
  #keepAlive: NodeJS.Timeout | undefined;

  constructor(response: ServerResponse, plan: McpAnswerPlan) {
    this.#response = response;
    this.#plan = plan;
  }

  /** What the server is sent, and must not tell: errors quote what was asked for, a key in its query included. */
  hide(secrets: readonly string[]): void {
    this.#secrets = secrets;
  }

  head(status: number, headers: FlatHeaders): void {
    this.#discards = isKeptBack(status);
    if (this.#discards) return;
    this.#isStream = status < 300 && /^text\/event-stream\b/i.test(headerOf(headers, 'content-type') ?? '');
    this.#status = status;
    this.#headers = this.#cleaned(headers);
    if (this.#isStream) this.#beginStream();
    else if (this.#plan.unrun || status >= 400) this.#kept = [];
    else this.#writeHead();
  }

  data(chunk: Buffer): boolean {
    if (this.#discards || this.#isOver) return true;
    if (this.#kept) return this.#keep(chunk);
    if (!this.#events) return this.#response.write(chunk);
    const events = this.#events.push(chunk);
    if (!this.#mayWait(this.#events.waiting)) {
      this.#plan.held.release();
      events.push(this.#events.rest());
      this.#events = undefined;
      clearInterval(this.#keepAlive);
      this.#plan.becomesOpaque();
    }
    return this.#pass(events);
  }

  /** Whether the rest of an event may be waited for. */
  #mayWait(bytes: number): boolean {
    if (bytes <= EVENT_STEP_BYTES) {
      this.#plan.held.release();
      this.#heldBytes = 0;
    }
    while (this.#heldBytes + EVENT_STEP_BYTES < bytes) {
      if (bytes > EVENT_MAX_BYTES || !this.#plan.held.reserve(EVENT_STEP_BYTES)) return false;
      this.#heldBytes += EVENT_STEP_BYTES;
    }
    return true;
  }

  whenClosed(told: () => void): void {
    // The holder may have left while a credential was fetched, or a connection made.
    if (this.#response.destroyed) told();
    else this.#response.once('close', told);
  }

  whenDrained(resume: () => void): void {
    if (this.#busy) void this.#busy.then(resume);
    else this.#response.once('drain', resume);
  }

  /** Writes a message of our own into the stream: between events, so never within one. */
  tell(message: string): void {
    if (this.#events && !this.#isOver) {
      this.#response.write(`event: message\ndata: ${message}\n\n`);
    }
  }

  /** After the server's last byte. */
  async finish(): Promise<void> {
    // The server may close while an event of its last bytes is waited for.
    await this.#busy;
    const kept = this.#kept && this.#withoutSecrets(Buffer.concat(this.#kept));
    if (kept) this.#plan.unrun?.see(kept.toString('utf8'));
    if (this.#plan.unrun && this.#plan.unrun.unrun.uses > 0) await this.#plan.giveBack();
    clearInterval(this.#keepAlive);
    if (this.#response.destroyed) return;
    if (kept) this.#writeHead();
    this.#response.end(kept ?? this.#events?.rest());
  }

  /** The answer broke off. A stream that we ended ends like any; what else is not whole must not look so. */
  abort(byUs: boolean): void {
    clearInterval(this.#keepAlive);
    if (byUs && this.#isStream) this.#response.end();
    else this.#response.destroy();
  }

  /** Nothing may be written any more: not even after an end of our own, which a slow holder has yet to read. */
  get #isOver(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  #cleaned(headers: FlatHeaders): FlatHeaders {
    const dropped = ['www-authenticate', 'mcp-session-id', ...(this.#isStream ? ['content-length'] : [])];
    const session = headerOf(headers, 'mcp-session-id');
    const own = session === undefined ? [] : ['mcp-session-id', this.#plan.sealSession(session)];
    const shown = withoutHeaders(headers, dropped).map((each) => hideSecrets(each, this.#secrets));
    return [...shown, ...own];
  }

  #withoutSecrets(body: Buffer): Buffer {
    if (!this.#secrets.some((each) => body.includes(each))) return body;
    this.#headers = withoutHeaders(this.#headers, ['content-length']);
    return Buffer.from(hideSecrets(body.toString('latin1'), this.#secrets), 'latin1');
  }

  #beginStream(): void {
    this.#events = new EventSplitter();
    this.#keepAlive = setInterval(() => {
      if (!this.#isOver) this.#response.write(KEEP_ALIVE);
    }, KEEP_ALIVE_MS);
    this.#response.once('close', () => clearInterval(this.#keepAlive));
    // Read by nginx, which would hold a stream back (ngx_http_proxy_module, proxy_buffering).
    this.#headers.push('x-accel-buffering', 'no');
    this.#writeHead();
  }

  #pass(events: readonly Buffer[]): boolean {
    if (events.length === 0) return true;
    if (!events.some((bytes) => this.#isSpecial(bytes))) return this.#response.write(Buffer.concat(events));
    this.#busy = this.#passEach(events).finally(() => {
      this.#busy = undefined;
    });
    return false;
  }

  /** An event that must be waited for: it is rewritten, or a charge is given back before it leaves. */
  #isSpecial(bytes: Buffer): boolean {
    const { openEndpoint, unrun } = this.#plan;
    const event = openEndpoint || unrun ? readEvent(bytes) : undefined;
    if (!event) return false;
    if (openEndpoint && event.name === 'endpoint') return true;
    unrun?.see(event.data);
    return unrun?.isDone === true;
  }

  async #passEach(events: readonly Buffer[]): Promise<void> {
    for (const bytes of events) {
      if (this.#isOver) return;
      const event = this.#plan.openEndpoint && readEvent(bytes);
      if (event?.name !== 'endpoint') {
        if (this.#plan.unrun?.isDone) await this.#plan.giveBack();
        this.#response.write(bytes);
        continue;
      }
      const rewritten = await this.#plan.openEndpoint?.(event.data).catch(() => undefined);
      if (!rewritten) return void this.#response.end();
      if (!this.#isOver) this.#response.write(rewritten);
    }
  }

  #keep(chunk: Buffer): boolean {
    this.#kept?.push(chunk);
    this.#keptBytes += chunk.length;
    if (this.#keptBytes <= KEPT_MAX_BYTES) return true;
    const early = Buffer.concat(this.#kept ?? []);
    this.#kept = undefined;
    this.#writeHead();
    return this.#response.write(early);
  }

  #writeHead(): void {
    if (this.#response.destroyed) return;
    const { unrun, ownHeaders } = this.#plan;
    const back = (this.#status < 300 ? unrun?.unrun : unrun?.all) ?? NOTHING;
    this.#response.writeHead(this.#status, [...this.#headers, ...ownHeaders(back)]);
    if (this.#isStream) sendHead(this.#response);
  }
}
