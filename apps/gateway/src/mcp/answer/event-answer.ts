import type { Refusal } from '@presign/schema';
import { breakOff } from '../../http/cut.ts';
import { endWith } from '../../http/headers.ts';
import { isCoded, MaskedBody } from '../../http/hide-secrets.ts';
import { EventSplitter, hasId, isMessage, readEvent } from '../../http/sse.ts';
import { EventMemory } from '../../share/body-memory.ts';
import type { UnansweredRequests } from '../open/unanswered.ts';
import { readAnswers } from '../request/messages.ts';
import type { AnswerFilter } from './answer-filter.ts';
import type { AnswerParts, Holder } from './holder.ts';
import { errorsFor } from './refuse.ts';
import { LIST_UNREAD } from './tool-list.ts';

/** The most bytes that the gateway writes into a stream that its holder does not read. The server's own events wait at the server. */
const UNREAD_MAX_BYTES = 256 * 1024;
/** Common proxies close an idle connection after a minute. */
const KEEP_ALIVE_MS = 15_000;
const NOTHING_LEFT = Buffer.alloc(0);
const KEEP_ALIVE = Buffer.from(': keep-alive\n\n');

/**
 * `events`: they are read, and the gateway may write messages between them. `bytes`: they pass unread. Without event
 * boundaries no message of the gateway can be written. `unread`: its next event cannot be filtered, so the rest of the
 * stream is neither read nor sent, and it ends with a refusal.
 */
type State =
  | { readonly is: 'events' | 'unread'; readonly splitter: EventSplitter }
  | { readonly is: 'bytes'; readonly masked: MaskedBody };

/** A stream of events. Its head is written when it begins. */
export class EventAnswer {
  readonly #parts: AnswerParts;
  readonly #holder: Holder;
  readonly #filter: AnswerFilter;
  readonly #unanswered: UnansweredRequests;
  readonly #cut: () => void;
  readonly #memory: EventMemory;
  #state: State = { is: 'events', splitter: new EventSplitter() };
  #hasId: boolean;
  /** Set while an event is rewritten, or waits for a refund. */
  #busy: Promise<void> | undefined;
  #keepAlive: NodeJS.Timeout | undefined;

  constructor(
    parts: AnswerParts,
    holder: Holder,
    filter: AnswerFilter,
    unanswered: UnansweredRequests,
    cut: () => void,
  ) {
    this.#parts = parts;
    this.#holder = holder;
    this.#filter = filter;
    this.#unanswered = unanswered;
    this.#cut = cut;
    this.#memory = new EventMemory(parts.answerMemory);
    this.#hasId = parts.call.lastEventId !== undefined;
  }

  begin(): void {
    const isReadable = !isCoded(this.#holder.contentEncoding);
    const { mustRead } = this.#filter;
    if (isReadable || mustRead) this.#keepItAlive();
    if (!isReadable && mustRead) this.#holder.drop(['content-encoding']);
    // nginx obeys this header, and would otherwise buffer the stream (ngx_http_proxy_module, proxy_buffering).
    this.#holder.add('x-accel-buffering', 'no');
    this.#holder.writeHead(true);
    if (isReadable) return;
    if (mustRead) this.#endUnread(new EventSplitter(), []);
    else this.#passUnread(NOTHING_LEFT);
  }

  #keepItAlive(): void {
    const { response } = this.#holder;
    this.#keepAlive = setInterval(() => {
      if (!this.#holder.isOver) response.write(KEEP_ALIVE);
    }, KEEP_ALIVE_MS);
    response.once('close', () => clearInterval(this.#keepAlive));
  }

  data(chunk: Buffer): boolean {
    const state = this.#state;
    if (state.is === 'unread' || this.#holder.isOver) return true;
    if (state.is === 'bytes') return this.#holder.response.write(state.masked.push(chunk));
    const all = state.splitter.push(chunk);
    const events = this.#filter.events(all);
    if (events.length === all.length && this.#memory.holds(state.splitter.waiting)) return this.#pass(events);
    if (this.#filter.mustRead) return this.#endUnread(state.splitter, events);
    return this.#pass([...events, this.#passUnread(state.splitter.rest())]);
  }

  /** Ends a stream whose next event cannot be filtered, after these events. */
  #endUnread(splitter: EventSplitter, events: readonly Buffer[]): boolean {
    this.#state = { is: 'unread', splitter };
    this.#parts.answerMemory.release();
    this.#cut();
    this.#pass(events);
    void Promise.resolve(this.#busy).then(() => this.#endWith(LIST_UNREAD));
    return true;
  }

  /** Passes the rest of a stream without splitting it into events. Returns the first bytes. */
  #passUnread(begun: Buffer): Buffer {
    const { answerMemory, legacy } = this.#parts;
    answerMemory.release();
    clearInterval(this.#keepAlive);
    legacy?.close();
    const masked = new MaskedBody('', this.#holder.secrets, answerMemory);
    this.#state = { is: 'bytes', masked };
    return masked.push(begun);
  }

  #pass(events: readonly Buffer[]): boolean {
    if (events.length === 0) return true;
    const waits = events.map((bytes) => this.#mustWait(bytes));
    const { response, secrets } = this.#holder;
    if (!waits.includes(true)) return response.write(secrets.mask(Buffer.concat(events)));
    this.#busy = this.#passEach(events).finally(() => {
      this.#busy = undefined;
    });
    return false;
  }

  /** Whether an event must be rewritten, or wait until a charge is refunded. */
  #mustWait(bytes: Buffer): boolean {
    const { legacy } = this.#parts;
    const { requests } = this.#holder;
    if (!legacy && this.#unanswered.size === 0) return false;
    this.#hasId ||= hasId(bytes);
    const event = readEvent(bytes);
    if (!event) return false;
    if (legacy?.namesEndpoint(event)) return true;
    if (this.#unanswered.size === 0 || !isMessage(event)) return false;
    const answers = readAnswers(event.data);
    this.#unanswered.answered(answers.map(({ id }) => id));
    requests?.see(answers);
    return requests?.isDone === true;
  }

  async #passEach(events: readonly Buffer[]): Promise<void> {
    const { legacy, refund } = this.#parts;
    const { response, requests, secrets } = this.#holder;
    for (const bytes of events) {
      if (this.#holder.isOver) return;
      const event = legacy && readEvent(bytes);
      if (!event || !legacy.namesEndpoint(event)) {
        if (requests?.isDone) await refund.giveUnrun();
        response.write(secrets.mask(bytes));
        continue;
      }
      const rewritten = await legacy.rewriteEndpoint(event.data, (message) => this.#send(message));
      if (!rewritten) return void response.end();
      if (!this.#holder.isOver) response.write(rewritten);
    }
  }

  /** Writes a message of the gateway into the stream, between two events. Disconnects a holder who does not read. */
  #send(message: string): void {
    const { response } = this.#holder;
    if (response.writableLength > UNREAD_MAX_BYTES) breakOff(response);
    else this.#writeMessage(message);
  }

  #writeMessage(message: string): void {
    if (this.#state.is !== 'bytes' && !this.#holder.isOver)
      this.#holder.response.write(`event: message\ndata: ${message}\n\n`);
  }

  whenDrained(resume: () => void): void {
    if (this.#busy) void this.#busy.then(resume);
    else this.#holder.response.once('drain', resume);
  }

  /** It has brought the answers to all requests of its POST. */
  get isComplete(): boolean {
    return this.#state.is !== 'bytes' && this.#unanswered.areOver;
  }

  /** @param unanswered the refusal of requests that the server left open */
  async finish(unanswered: Refusal): Promise<undefined> {
    // The server may close while one of its last events is still being rewritten.
    await this.#busy;
    const state = this.#state;
    const end = state.is === 'bytes' ? await state.masked.end() : undefined;
    await this.#parts.refund.giveUnrun();
    clearInterval(this.#keepAlive);
    const { response, secrets } = this.#holder;
    if (this.#holder.isOver) return;
    if (state.is === 'bytes') return void endWith(response, end ?? NOTHING_LEFT);
    if (this.#unanswered.ids.length > 0) return this.#endOpen(state.splitter, unanswered);
    const [last = NOTHING_LEFT] = this.#filter.events([state.splitter.rest()]);
    endWith(response, secrets.mask(last));
  }

  /** Ends a stream whose server has left requests open: clients would wait for the answers, unless they can resume the stream. */
  async #endOpen(splitter: EventSplitter, refusal: Refusal): Promise<undefined> {
    // The last event may lack its blank line.
    const last = Buffer.concat([splitter.rest(), Buffer.from('\n\n')]);
    if (last.length > 2) this.#pass(this.#filter.events([last]));
    await this.#busy;
    if (this.#lacksAnswers) this.#endWith(refusal);
    else this.#holder.response.end();
  }

  /**
   * Ends a broken stream with a refusal for each open request. Without open requests it must not look complete.
   * @param isCut whether the gateway ended the call itself
   */
  async abort(refusal: Refusal, isCut: boolean): Promise<void> {
    await this.#busy;
    clearInterval(this.#keepAlive);
    const { response } = this.#holder;
    if (!response.headersSent) return;
    if (isCut || this.#lacksAnswers) this.#endWith(refusal);
    else breakOff(response);
  }

  /** The official SDKs resume a POST stream if one of its events had an id. An error would end the request instead. */
  get #lacksAnswers(): boolean {
    const isResumable = this.#hasId && !this.#parts.legacy?.hasEndpoint;
    return this.#state.is !== 'bytes' && this.#unanswered.ids.length > 0 && !isResumable;
  }

  /** Ends a stream with this refusal for each request that still waits. */
  #endWith(refusal: Refusal): void {
    const { requestId } = this.#parts.call;
    for (const error of errorsFor(refusal, this.#unanswered.ids, requestId)) this.#writeMessage(error);
    this.#holder.response.end();
  }
}
