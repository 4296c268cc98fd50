import type { StreamEvent, StreamForm } from '../../http/sse.ts';
import { Abridger } from '../../json/abridge.ts';

const LF = 10;
const CR = 13;
const COLON = 58;
/** No known field has a longer name, and no known event has a longer value. */
const NAME_MAX_BYTES = 1024;
/** Reading more lines would delay other calls. */
const LINES_MAX = 50_000;

/**
 * Reads one event of text that is too long to be kept, as its bytes pass. Its data is shortened like any JSON text, because an event with
 * an image of megabytes may also contain the usage. Its lines are joined, because JSON does not need their ends.
 */
export class LongEvent {
  readonly #data = new Abridger();
  /** The field of the current line. Undefined while its name is read. */
  #field: 'data' | 'event' | 'other' | undefined;
  #name = '';
  #eventName: string | undefined;
  #lines = 0;
  #hasData: boolean;
  readonly #isLine: boolean;

  constructor({ end }: Pick<StreamForm, 'end'>) {
    this.#isLine = end === 'line';
    this.#field = this.#isLine ? 'data' : undefined;
    this.#hasData = this.#isLine;
  }

  /** How many bytes of memory it takes. */
  get size(): number {
    return this.#data.size + this.#name.length;
  }

  /** Takes the next bytes. Returns false if reading them would take too much memory or time. */
  push(bytes: Buffer): boolean {
    let at = 0;
    while (at < bytes.length && this.#lines <= LINES_MAX) {
      const end = this.#field === undefined ? nameEnd(bytes, at) : lineEnd(bytes, at);
      if (!this.#take(bytes.subarray(at, end))) return false;
      if (end < bytes.length) this.#mark(bytes[end] as number);
      at = end + 1;
    }
    return this.#lines <= LINES_MAX;
  }

  /** The event. Undefined if it has no data. If even the shortened text is too long, its data is not JSON. */
  end(): StreamEvent | undefined {
    if (!this.#hasData) return undefined;
    return { data: this.#data.end()?.toString('utf8') ?? '', name: this.#eventName?.trim() };
  }

  #take(bytes: Buffer): boolean {
    if (this.#field === 'data') return this.#data.push(bytes);
    const text = bytes.toString('latin1', 0, NAME_MAX_BYTES);
    if (this.#field === 'event') this.#eventName = cut(`${this.#eventName ?? ''}${text}`);
    if (this.#field === undefined) this.#name = cut(this.#name + text);
    return true;
  }

  /** A colon after a field's name, or the end of a line. */
  #mark(byte: number): void {
    const isName = byte === COLON && this.#field === undefined;
    this.#field = isName ? fieldNamed(this.#name) : this.#isLine ? 'data' : undefined;
    this.#hasData ||= this.#field === 'data';
    this.#name = '';
    if (!isName) this.#lines++;
  }
}

const fieldNamed = (name: string): 'data' | 'event' | 'other' => {
  // The byte order mark that a stream may begin with.
  const plain = name.replace('\xef\xbb\xbf', '');
  return plain === 'data' || plain === 'event' ? plain : 'other';
};

const cut = (text: string): string => text.slice(0, NAME_MAX_BYTES);

const nameEnd = (bytes: Buffer, start: number): number => endAt(bytes, start, COLON);
const lineEnd = (bytes: Buffer, start: number): number => endAt(bytes, start, LF);

/** The index of the next line end or of this byte, or the end. */
function endAt(bytes: Buffer, start: number, other: number): number {
  let at = start;
  while (at < bytes.length && bytes[at] !== LF && bytes[at] !== CR && bytes[at] !== other) at++;
  return at;
}
