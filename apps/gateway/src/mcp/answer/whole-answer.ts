import type { Refusal } from '@presign/schema';
import { breakOff } from '../../http/cut.ts';
import { endWith, joined } from '../../http/headers.ts';
import { isCoded, MaskedBody } from '../../http/hide-secrets.ts';
import { CHUNK_OVERHEAD_BYTES } from '../../share/body-memory.ts';
import { maySayUnrun, readAnswers } from '../request/messages.ts';
import type { AnswerFilter } from './answer-filter.ts';
import type { AnswerParts, Holder } from './holder.ts';
import { UNDECODED } from './refuse.ts';
import { LIST_UNREAD } from './tool-list.ts';
import { transportRefusal } from './transport.ts';

/** An answer in one piece is stored up to this size, so that its charge can be refunded before it ends. */
const KEPT_MAX_BYTES = 1024 * 1024;

/**
 * `kept`: its bytes wait for its end, because it may have to change, or may say that requests did not run.
 * `passing`: its head is written, and its bytes pass as they come.
 * `unread`: it is too large to be filtered, so the rest of it is neither read nor sent.
 */
type State =
  | { readonly is: 'kept'; readonly chunks: Buffer[]; bytes: number }
  | { readonly is: 'passing' }
  | { readonly is: 'unread' };

/** An answer that is not a stream of events. */
export class WholeAnswer {
  readonly #parts: AnswerParts;
  readonly #holder: Holder;
  readonly #filter: AnswerFilter;
  readonly #cut: () => void;
  readonly #masked: MaskedBody;
  #state: State;

  constructor(parts: AnswerParts, holder: Holder, filter: AnswerFilter, cut: () => void) {
    this.#parts = parts;
    this.#holder = holder;
    this.#filter = filter;
    this.#cut = cut;
    const { contentEncoding, secrets } = holder;
    // An answer that need not be read passes unchanged, whatever its coding.
    const isDecoded = isCoded(contentEncoding) && (secrets.forms.length > 0 || filter.mayChange);
    this.#masked = new MaskedBody(isDecoded ? contentEncoding : '', secrets, parts.answerMemory);
    if (isDecoded) holder.drop(['content-encoding', 'content-length']);
    const isKept = holder.requests || isDecoded || filter.mayChange || holder.status >= 400;
    this.#state = isKept ? { is: 'kept', chunks: [], bytes: 0 } : { is: 'passing' };
  }

  begin(): void {
    if (this.#state.is === 'passing') this.#holder.writeHead(false);
  }

  data(chunk: Buffer): boolean {
    if (this.#state.is === 'unread' || this.#holder.isOver) return true;
    const masked = this.#masked.push(chunk);
    return this.#state.is === 'kept' ? this.#keep(this.#state, masked) : this.#holder.response.write(masked);
  }

  #keep(kept: Extract<State, { is: 'kept' }>, chunk: Buffer): boolean {
    const size = chunk.length + CHUNK_OVERHEAD_BYTES;
    kept.chunks.push(chunk);
    kept.bytes += size;
    const { mustRead, mostBytes } = this.#filter;
    const { answerMemory } = this.#parts;
    if (kept.bytes <= (mustRead ? mostBytes : KEPT_MAX_BYTES) && answerMemory.reserve(size)) return true;
    this.#state = { is: mustRead ? 'unread' : 'passing' };
    answerMemory.release();
    if (mustRead) {
      this.#cut();
      return true;
    }
    this.#holder.writeHead(false);
    return this.#holder.response.write(Buffer.concat(kept.chunks));
  }

  /** Ends the answer after the server's last byte. Returns the refusal to send in its place. */
  async finish(): Promise<Refusal | undefined> {
    const { response, requests, status } = this.#holder;
    const rest = await this.#masked.end();
    if (!rest) return response.headersSent ? void breakOff(response) : UNDECODED;
    const kept =
      this.#state.is === 'kept'
        ? joined([...this.#state.chunks, ...(rest.length > 0 ? [rest] : [])])
        : undefined;
    if (kept && maySayUnrun(kept)) requests?.see(readAnswers(kept.toString('utf8')));
    await this.#parts.refund.giveUnrun();
    const wrong = transportRefusal(this.#parts.call, status);
    const shown = kept && (await this.#filter.body(kept, wrong?.message));
    if (this.#state.is === 'unread' || (kept && !shown)) return wrong ?? LIST_UNREAD;
    if (this.#holder.isOver) return undefined;
    if (wrong?.message) response.statusMessage = wrong.message;
    if (shown !== kept) this.#holder.drop(['content-length']);
    if (shown) this.#holder.writeHead(false);
    endWith(response, shown ?? rest);
    return undefined;
  }

  /** It must not look complete. If nothing is written yet, the holder gets the refusal instead. */
  abort(): void {
    if (this.#holder.response.headersSent) breakOff(this.#holder.response);
  }
}
