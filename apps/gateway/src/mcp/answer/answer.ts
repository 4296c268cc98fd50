import { ANSWER_HEADERS_OF_ALL } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { Cutter } from '../../http/cut.ts';
import type { Receiver } from '../../http/forward.ts';
import { type FlatHeaders, headerOf, withoutHeaders } from '../../http/headers.ts';
import { Secrets } from '../../http/hide-secrets.ts';
import type { Place } from '../ids/cookies.ts';
import type { UnansweredRequests } from '../open/unanswered.ts';
import { AnswerFilter } from './answer-filter.ts';
import { EventAnswer } from './event-answer.ts';
import { type AnswerParts, Holder } from './holder.ts';
import { isKeptBack } from './statuses.ts';
import { WholeAnswer } from './whole-answer.ts';

/** The holder's side of an MCP answer: one message as JSON, or a stream of events. */
export class McpAnswer implements Receiver {
  /** Cookies are read, and do not reach the holder. */
  readonly passes = (name: string): boolean => name === 'set-cookie' || ANSWER_HEADERS_OF_ALL(name);
  location: string | undefined;
  readonly #parts: AnswerParts;
  readonly #holder: Holder;
  readonly #filter: AnswerFilter;
  /** The requests that this stream must answer. */
  readonly #unanswered: UnansweredRequests;
  /** Ends the call to the server. */
  #cutter: Cutter | undefined;
  /** Undefined before the head, and after a head that the gateway answers in place of the server. */
  #body: WholeAnswer | EventAnswer | undefined;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
    this.#holder = new Holder(parts);
    this.#unanswered = parts.legacy?.unanswered ?? parts.call.unanswered;
    this.#filter = new AnswerFilter(parts.call, parts.encryptionKeys, parts.turn, parts.legacy);
  }

  /** Masks these secrets, because error answers quote what was sent, keys in the query included. */
  begin(secrets: readonly string[], place: Place, cutter: Cutter): void {
    this.#filter.comesFrom(place);
    this.#holder.secrets = new Secrets(secrets);
    this.#cutter = cutter;
  }

  head(status: number, headers: FlatHeaders): void {
    const { legacy, isTaken } = this.#parts;
    if (status < 300) isTaken();
    if (legacy) legacy.cookies = this.#filter.cookies(headers);
    this.location = headerOf(headers, 'location');
    if (isKeptBack(status)) return;
    const isStream = status < 300 && /^text\/event-stream\b/i.test(headerOf(headers, 'content-type') ?? '');
    const dropped = ['mcp-session-id', 'set-cookie', ...(isStream ? ['content-length'] : [])];
    const shown = withoutHeaders(headers, dropped).map((each) => this.#holder.secrets.hide(each));
    this.#holder.takesHead(status, [...shown, ...this.#filter.session(status, headers)]);
    const cut = () => this.#cutter?.cut('unread');
    this.#body = isStream
      ? new EventAnswer(this.#parts, this.#holder, this.#filter, this.#unanswered, cut)
      : new WholeAnswer(this.#parts, this.#holder, this.#filter, cut);
    this.#body.begin();
  }

  data(chunk: Buffer): boolean {
    return this.#body?.data(chunk) ?? true;
  }

  whenClosed(callback: () => void): void {
    const { response } = this.#holder;
    // The holder may have disconnected while a credential was fetched or a connection was opened.
    if (response.destroyed) callback();
    else response.once('close', callback);
  }

  whenDrained(resume: () => void): void {
    if (this.#body instanceof EventAnswer) this.#body.whenDrained(resume);
    else this.#holder.response.once('drain', resume);
  }

  whenIdle(): Promise<void> {
    return this.#unanswered.whenNone();
  }

  get isOver(): boolean {
    return this.#body instanceof EventAnswer && this.#body.isComplete;
  }

  /**
   * Ends the answer after the server's last byte. If the answer cannot be filtered, returns the refusal to send
   * instead.
   * @param unanswered the refusal for requests that the server's stream left open
   */
  async finish(unanswered: Refusal): Promise<Refusal | undefined> {
    return this.#body?.finish(unanswered);
  }

  /**
   * Ends an answer that broke off. A stream then ends with the refusal of its open requests. Any other answer must not look complete.
   * @param isCut whether the gateway ended the call itself
   */
  async abort(refusal: Refusal, isCut: boolean): Promise<void> {
    await this.#body?.abort(refusal, isCut);
  }
}
