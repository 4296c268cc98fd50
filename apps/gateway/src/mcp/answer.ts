import type { ServerResponse } from 'node:http';
import type { EncryptionKeys } from '@presign/crypto';
import { ANSWER_HEADERS_OF_ALL } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { breakOff, type Cutter } from '../http/cut.ts';
import type { Receiver } from '../http/forward.ts';
import { endWith, type FlatHeaders, headerOf, joined, sendHead, withoutHeaders } from '../http/headers.ts';
import { isCoded, MaskedBody, NO_SECRETS, Secrets } from '../http/hide-secrets.ts';
import { EventSplitter, hasId, isMessage, readEvent } from '../http/sse.ts';
import type { Admitted } from '../limits/admit.ts';
import { CHUNK_OVERHEAD_BYTES, EventMemory, type Reservation } from '../share/body-memory.ts';
import type { Turn } from '../share/turns.ts';
import { AnswerFilter } from './answer-filter.ts';
import type { Place } from './ids/cookies.ts';
import type { LegacyStream } from './legacy-sse.ts';
import { maySayUnrun, readAnswers } from './messages.ts';
import type { UnansweredRequests } from './open/unanswered.ts';
import { type ChargeRefund, callHeaders, type UnrunRequests } from './refund.ts';
import { errorsFor, UNDECODED } from './refuse.ts';
import type { McpCall } from './request.ts';
import { isKeptBack, refusesWhole } from './send.ts';
import { LIST_UNREAD } from './tool-list.ts';
import { transportRefusal } from './transport.ts';

/** Everything that passing an answer on depends on. */
type AnswerParts = {
  readonly call: McpCall;
  readonly admitted: Admitted;
  readonly refund: ChargeRefund;
  /** For a GET, which can become a stream of the 2024-11-05 transport. */
  readonly legacy: LegacyStream | undefined;
  /** The server begins to answer, and does not refuse the call. */
  readonly isTaken: () => void;
  /** The memory of bytes that wait: an event that is not complete yet, or an answer in one piece. */
  readonly answerMemory: Reservation;
  readonly encryptionKeys: EncryptionKeys;
  readonly turn: Turn;
};

/** An answer in one piece is kept up to this size, so that its charge can be refunded before it ends. */
const KEPT_MAX_BYTES = 1024 * 1024;
/** How much the gateway writes into a stream that its holder does not read. The server's own events wait at the server. */
const UNREAD_MAX_BYTES = 256 * 1024;
/** Common proxies drop a silent connection after a minute. */
const KEEP_ALIVE_MS = 15_000;
const NOTHING_LEFT = Buffer.alloc(0);
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');

/** The holder's side of an MCP answer: one message as JSON, or a stream of events. */
export class McpAnswer implements Receiver {
  readonly #parts: AnswerParts;
  readonly #response: ServerResponse;
  /** Undefined when nothing of the call can be given back. */
  readonly #requests: UnrunRequests | undefined;
  /** Cookies are read, and do not reach the holder. */
  readonly passes = (name: string): boolean => name === 'set-cookie' || ANSWER_HEADERS_OF_ALL(name);
  location: string | undefined;
  /** The requests whose answers this stream has to bring. */
  readonly #unanswered: UnansweredRequests;
  readonly #filter: AnswerFilter;
  readonly #eventMemory: EventMemory;
  /** It cannot be filtered, so the rest of it is neither read nor sent. */
  #isUnread = false;
  /** Ends the call to the server. */
  #cutter: Cutter | undefined;
  #status = 0;
  #headers: FlatHeaders = [];
  #discards = false;
  #events: EventSplitter | undefined;
  #isStream = false;
  #kept: Buffer[] | undefined;
  #keptBytes = 0;
  #secrets = NO_SECRETS;
  /** For bytes that are not read as events. */
  #masked: MaskedBody | undefined;
  #hasId: boolean;
  #busy: Promise<void> | undefined;
  #keepAlive: NodeJS.Timeout | undefined;

  constructor(parts: AnswerParts) {
    const { requests } = parts.refund;
    this.#parts = parts;
    this.#response = parts.call.outgoing;
    this.#hasId = parts.call.lastEventId !== undefined;
    if (requests.all.uses > 0 || parts.call.round) this.#requests = requests;
    this.#unanswered = parts.legacy?.unanswered ?? parts.call.unanswered;
    this.#eventMemory = new EventMemory(parts.answerMemory);
    this.#filter = new AnswerFilter(parts.call, parts.encryptionKeys, parts.turn, parts.legacy);
  }

  /** Masks these secrets, because error answers quote what was sent, keys in the query included. */
  begin(secrets: readonly string[], place: Place, cutter: Cutter): void {
    this.#filter.comesFrom(place);
    this.#secrets = new Secrets(secrets);
    this.#cutter = cutter;
  }

  head(status: number, headers: FlatHeaders): void {
    const { legacy, isTaken } = this.#parts;
    if (status < 300) isTaken();
    if (legacy) legacy.cookies = this.#filter.cookies(headers);
    this.location = headerOf(headers, 'location');
    this.#discards = isKeptBack(status);
    if (this.#discards) return;
    this.#isStream = status < 300 && /^text\/event-stream\b/i.test(headerOf(headers, 'content-type') ?? '');
    this.#status = status;
    const dropped = ['mcp-session-id', 'set-cookie', ...(this.#isStream ? ['content-length'] : [])];
    const shown = withoutHeaders(headers, dropped).map((each) => this.#secrets.hide(each));
    this.#headers = [...shown, ...this.#filter.session(status, headers)];
    if (this.#isStream) return void this.#beginStream();
    const isRead = this.#maskBody(headerOf(headers, 'content-encoding') ?? '') || this.#filter.mayChange;
    if (this.#requests || isRead || status >= 400) this.#kept = [];
    else this.#writeHead();
  }

  data(chunk: Buffer): boolean {
    if (this.#discards || this.#isUnread || this.#isOver) return true;
    if (this.#masked) {
      const masked = this.#masked.push(chunk);
      return this.#kept ? this.#keep(masked) : this.#response.write(masked);
    }
    const events = this.#shown(this.#events?.push(chunk) ?? []);
    if (this.#isUnread || (this.#events && !this.#eventMemory.holds(this.#events.waiting))) {
      if (this.#filter.mustRead) return this.#endUnread(events);
      events.push(this.#passUnread(this.#events?.rest() ?? NOTHING_LEFT));
    }
    return this.#pass(events);
  }

  /** Events as the holder gets them, up to the first that must not pass. */
  #shown(events: readonly Buffer[]): Buffer[] {
    const shown = this.#filter.events(events);
    this.#isUnread ||= shown.length < events.length;
    return shown;
  }

  /** Ends a stream whose next event cannot be filtered, after these events. */
  #endUnread(events: readonly Buffer[]): boolean {
    this.#endUpstream();
    this.#pass(events);
    void Promise.resolve(this.#busy).then(() => this.#endWith(LIST_UNREAD));
    return true;
  }

  #endUpstream(): true {
    this.#isUnread = true;
    this.#parts.answerMemory.release();
    this.#cutter?.cut('unread');
    return true;
  }

  /** Lets the rest of a stream pass without its events. Returns the first bytes of it. */
  #passUnread(begun: Buffer): Buffer {
    this.#parts.answerMemory.release();
    this.#events = undefined;
    clearInterval(this.#keepAlive);
    // Without event boundaries no message of the gateway can be written.
    this.#parts.legacy?.close();
    this.#masked = new MaskedBody('', this.#secrets, this.#parts.answerMemory);
    return this.#masked.push(begun);
  }

  whenClosed(callback: () => void): void {
    // The holder may have left while a credential was fetched, or a connection made.
    if (this.#response.destroyed) callback();
    else this.#response.once('close', callback);
  }

  whenDrained(resume: () => void): void {
    if (this.#busy) void this.#busy.then(resume);
    else this.#response.once('drain', resume);
  }

  /** Writes a message of the gateway into the stream, between two events. Cuts off a holder who does not read. */
  #send(message: string): void {
    if (this.#response.writableLength > UNREAD_MAX_BYTES) breakOff(this.#response);
    else this.#writeMessage(message);
  }

  #writeMessage(message: string): void {
    if (this.#events && !this.#isOver) this.#response.write(`event: message\ndata: ${message}\n\n`);
  }

  whenIdle(): Promise<void> {
    return this.#unanswered.whenNone();
  }

  get isOver(): boolean {
    return this.#events !== undefined && this.#unanswered.areOver;
  }

  /**
   * Ends the answer after the server's last byte. Returns the refusal to send in its place, if it cannot be filtered.
   * @param unanswered the refusal of requests that the server's stream left open
   */
  async finish(unanswered: Refusal): Promise<Refusal | undefined> {
    // The server may close while one of its last events is still being rewritten.
    await this.#busy;
    const rest = this.#masked && (await this.#masked.end());
    if (this.#masked && !rest) return this.#response.headersSent ? void breakOff(this.#response) : UNDECODED;
    const kept = this.#kept && joined([...this.#kept, ...(rest && rest.length > 0 ? [rest] : [])]);
    if (kept && maySayUnrun(kept)) this.#requests?.see(readAnswers(kept.toString('utf8')));
    await this.#parts.refund.giveUnrun();
    clearInterval(this.#keepAlive);
    const wrong = transportRefusal(this.#parts.call, this.#status);
    const shown = kept && (await this.#filter.body(kept, wrong?.message));
    if (!this.#isStream && (this.#isUnread || (kept && !shown))) return wrong ?? LIST_UNREAD;
    if (this.#isOver) return undefined;
    if (wrong?.message) this.#response.statusMessage = wrong.message;
    if (shown !== kept) this.#headers = withoutHeaders(this.#headers, ['content-length']);
    if (shown) this.#writeHead();
    if (this.#events && this.#unanswered.ids.length > 0) return this.#endOpen(unanswered);
    const [last = NOTHING_LEFT] = this.#shown([this.#events?.rest() ?? NOTHING_LEFT]);
    endWith(this.#response, shown ?? rest ?? this.#secrets.mask(last));
    return undefined;
  }

  /**
   * Ends an answer that broke off. A stream then ends with the refusal of its open requests. Any other answer must not look complete.
   * @param isCut whether the gateway ended the call itself
   */
  async abort(refusal: Refusal, isCut: boolean): Promise<void> {
    await this.#busy;
    clearInterval(this.#keepAlive);
    // Nothing is written yet: the holder gets the refusal instead.
    if (!this.#response.headersSent) return;
    if (!this.#isStream || !(isCut || this.#lacksAnswers)) return breakOff(this.#response);
    this.#endWith(refusal);
  }

  /** Ends a stream whose server has left requests open: clients would wait for them, unless they can take it up elsewhere. */
  async #endOpen(refusal: Refusal): Promise<undefined> {
    // The last event may lack its blank line.
    const last = Buffer.concat([this.#events?.rest() ?? NOTHING_LEFT, Buffer.from('\n\n')]);
    if (last.length > 2) this.#pass(this.#shown([last]));
    await this.#busy;
    if (this.#lacksAnswers) this.#endWith(refusal);
    else this.#response.end();
  }

  /** The official SDKs resume a POST stream if one of its events had an id. An error would end the request instead. */
  get #lacksAnswers(): boolean {
    const isResumable = this.#hasId && !this.#parts.legacy?.hasEndpoint;
    return this.#events !== undefined && this.#unanswered.ids.length > 0 && !isResumable;
  }

  /** Ends a stream with this refusal of each request that still waits. */
  #endWith(refusal: Refusal): void {
    const { requestId } = this.#parts.call;
    for (const error of errorsFor(refusal, this.#unanswered.ids, requestId)) this.#writeMessage(error);
    this.#response.end();
  }

  /** Nothing may be written after the end, even if a slow holder still has to read it. */
  get #isOver(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  /** Returns whether the body is decoded. One that is not to be read passes as it is, whatever its coding. */
  #maskBody(contentEncoding: string): boolean {
    const isDecoded = isCoded(contentEncoding) && (this.#secrets.forms.length > 0 || this.#filter.mayChange);
    this.#masked = new MaskedBody(isDecoded ? contentEncoding : '', this.#secrets, this.#parts.answerMemory);
    if (isDecoded) this.#headers = withoutHeaders(this.#headers, ['content-encoding', 'content-length']);
    return isDecoded;
  }

  #beginStream(): void {
    const isReadable = !isCoded(headerOf(this.#headers, 'content-encoding') ?? '');
    const { mustRead } = this.#filter;
    if (isReadable || mustRead) this.#readEvents();
    if (!isReadable && mustRead) this.#headers = withoutHeaders(this.#headers, ['content-encoding']);
    // nginx reads this, and would otherwise hold the stream back (ngx_http_proxy_module, proxy_buffering).
    this.#headers.push('x-accel-buffering', 'no');
    this.#writeHead();
    if (!isReadable && mustRead) this.#endUnread([]);
    else if (!isReadable) this.#passUnread(NOTHING_LEFT);
  }

  #readEvents(): void {
    this.#events = new EventSplitter();
    this.#keepAlive = setInterval(() => {
      if (!this.#isOver) this.#response.write(KEEP_ALIVE);
    }, KEEP_ALIVE_MS);
    this.#response.once('close', () => clearInterval(this.#keepAlive));
  }

  #pass(events: readonly Buffer[]): boolean {
    if (events.length === 0) return true;
    const waits = events.map((bytes) => this.#mustWait(bytes));
    if (!waits.includes(true)) return this.#response.write(this.#secrets.mask(Buffer.concat(events)));
    this.#busy = this.#passEach(events).finally(() => {
      this.#busy = undefined;
    });
    return false;
  }

  /** Whether an event must be rewritten, or wait until a charge is refunded. */
  #mustWait(bytes: Buffer): boolean {
    const { legacy } = this.#parts;
    if (!legacy && this.#unanswered.size === 0) return false;
    this.#hasId ||= hasId(bytes);
    const event = readEvent(bytes);
    if (!event) return false;
    if (legacy?.namesEndpoint(event)) return true;
    if (this.#unanswered.size === 0 || !isMessage(event)) return false;
    const answers = readAnswers(event.data);
    this.#unanswered.answered(answers.map(({ id }) => id));
    this.#requests?.see(answers);
    return this.#requests?.isDone === true;
  }

  async #passEach(events: readonly Buffer[]): Promise<void> {
    const { legacy } = this.#parts;
    for (const bytes of events) {
      if (this.#isOver) return;
      const event = legacy && readEvent(bytes);
      if (!event || !legacy.namesEndpoint(event)) {
        if (this.#requests?.isDone) await this.#parts.refund.giveUnrun();
        this.#response.write(this.#secrets.mask(bytes));
        continue;
      }
      const rewritten = await legacy.rewriteEndpoint(event.data, (message) => this.#send(message));
      if (!rewritten) return void this.#response.end();
      if (!this.#isOver) this.#response.write(rewritten);
    }
  }

  #keep(chunk: Buffer): boolean {
    this.#kept?.push(chunk);
    const size = chunk.length + CHUNK_OVERHEAD_BYTES;
    this.#keptBytes += size;
    const most = this.#filter.mustRead ? this.#filter.mostBytes : KEPT_MAX_BYTES;
    if (this.#keptBytes <= most && this.#parts.answerMemory.reserve(size)) return true;
    const early = this.#kept ?? [];
    this.#kept = undefined;
    if (this.#filter.mustRead) return this.#endUpstream();
    this.#parts.answerMemory.release();
    this.#writeHead();
    return this.#response.write(Buffer.concat(early));
  }

  #writeHead(): void {
    if (this.#response.destroyed) return;
    const unrun = refusesWhole(this.#status) ? this.#requests?.all : this.#requests?.unrun;
    const { call, admitted, refund } = this.#parts;
    const own = callHeaders(call, admitted, refund.requests.all, unrun);
    this.#response.writeHead(this.#status, [...this.#headers, ...own]);
    if (this.#isStream) sendHead(this.#response);
  }
}
