import { CHUNK_OVERHEAD_BYTES } from './body-memory.ts';
import { FrameSplitter, readFrame } from './frames.ts';

const LF = 10;
const CR = 13;

/** How a stream separates its events, and how to read one. */
export type StreamForm = {
  /** Where an event ends. */
  readonly end: 'blank line' | 'line' | 'length';
  /** The data and the name of one event. Undefined when the bytes hold no data. */
  readonly read: (bytes: Buffer) => StreamEvent | undefined;
};

type StreamEvent = { readonly data: string; readonly name: string | undefined };

/**
 * The form of a stream of this content type. Undefined when the type is not a stream of events. JSON texts on one line
 * each have several types: Cohere's v1 chat sends `application/stream+json`, others send `application/x-ndjson`. AWS sends
 * binary messages.
 * https://github.com/ndjson/ndjson-spec
 */
export function streamForm(contentType: string): StreamForm | undefined {
  if (/^text\/event-stream\b/i.test(contentType)) return SERVER_SENT;
  if (/^application\/vnd\.amazon\.eventstream\b/i.test(contentType)) return FRAMES;
  return /^application\/(stream\+json|(x-)?ndjson|(x-)?jsonl)\b/i.test(contentType) ? LINES : undefined;
}

/** WHATWG HTML §9.2.6. */
const SERVER_SENT: StreamForm = { end: 'blank line', read: readEvent };
const LINES: StreamForm = { end: 'line', read: readLine };
const FRAMES: StreamForm = { end: 'length', read: readFrame };

/** Splits a stream of this form into its events. */
export const splitterOf = (form: StreamForm): EventSplitter | FrameSplitter =>
  form.end === 'length' ? new FrameSplitter() : new EventSplitter(form);

/**
 * Splits a stream into its events, byte for byte, wherever its chunks end. A line ends with LF, CR or CRLF, as in
 * server-sent events. A JSON text on one line contains none of them.
 */
export class EventSplitter {
  readonly #eachLine: boolean;
  #pending: Buffer[] = [];
  #waiting = 0;
  #lineIsEmpty = true;
  /** The last byte was CR, so an LF after it does not end a second line. */
  #afterCr = false;
  /** The last byte was a CR that ended an event, so an LF after it belongs to that event. */
  #owesLf = false;

  constructor({ end }: Pick<StreamForm, 'end'> = SERVER_SENT) {
    this.#eachLine = end === 'line';
  }

  /**
   * Takes the next bytes. Returns the events that are complete now, each with its last line end. When one chunk ends with
   * CR and the next begins with LF, the event passes with its CR and the LF follows by itself, so that a reader that waits
   * for the LF does not wait for the next event.
   */
  push(chunk: Buffer): Buffer[] {
    if (chunk.length === 0) return [];
    const events: Buffer[] = [];
    let start = 0;
    if (this.#owesLf && chunk[0] === LF) events.push(chunk.subarray(0, ++start));
    let line = this.#afterCr && chunk[0] === LF ? 1 : start;
    this.#owesLf = false;
    this.#afterCr = false;
    // Each of the two is searched for again only once it lies behind, so no byte is looked at more than twice.
    let cr = chunk.indexOf(CR, line);
    let lf = chunk.indexOf(LF, line);
    while (cr >= 0 || lf >= 0) {
      const at = cr >= 0 && (lf < 0 || cr < lf) ? cr : lf;
      const next = at === cr && lf === cr + 1 ? at + 2 : at + 1;
      const mayGoOn = at === cr && next === chunk.length && next === at + 1;
      if (this.#eachLine || (this.#lineIsEmpty && at === line)) {
        events.push(this.#take(chunk.subarray(start, next)));
        start = next;
        this.#owesLf = mayGoOn;
      } else this.#afterCr = mayGoOn;
      this.#lineIsEmpty = true;
      line = next;
      if (cr >= 0 && cr < next) cr = chunk.indexOf(CR, next);
      if (lf >= 0 && lf < next) lf = chunk.indexOf(LF, next);
    }
    if (line < chunk.length) this.#lineIsEmpty = false;
    if (start < chunk.length) this.#pending.push(chunk.subarray(start));
    this.#waiting += chunk.length - start;
    return events;
  }

  /** How many bytes the incomplete event takes, with the overhead of its chunks. */
  get waiting(): number {
    return this.#waiting + this.#pending.length * CHUNK_OVERHEAD_BYTES;
  }

  /** Returns the bytes after the last complete event, and forgets them. */
  rest(): Buffer {
    return this.#take(Buffer.alloc(0));
  }

  #take(last: Buffer): Buffer {
    const whole = this.#pending.length === 0 ? last : Buffer.concat([...this.#pending, last]);
    this.#pending = [];
    this.#waiting = 0;
    return whole;
  }
}

/** Reads one server-sent event. Undefined for comments and events without data. */
export function readEvent(bytes: Buffer): StreamEvent | undefined {
  let data: string | undefined;
  let name: string | undefined;
  for (const line of bytes.toString('utf8').split(/\r\n|\r|\n/)) {
    const [field, value] = fieldOf(line);
    if (field === 'data') data = data === undefined ? value : `${data}\n${value}`;
    else if (field === 'event') name = value;
  }
  return data === undefined ? undefined : { data, name };
}

/** Whether an event has an id, so that a client that loses the stream can ask for the events after it. */
export const hasId = (bytes: Buffer): boolean =>
  bytes.subarray(0, 3).equals(ID) || bytes.includes('\nid:') || bytes.includes('\rid:');

const ID = Buffer.from('id:');

/** Reads one JSON text. Undefined for a blank line. */
function readLine(bytes: Buffer): StreamEvent | undefined {
  const data = bytes.toString('utf8').trim();
  return data === '' ? undefined : { data, name: undefined };
}

function fieldOf(line: string): [string, string] {
  const text = line.charCodeAt(0) === 0xfeff ? line.slice(1) : line;
  const colon = text.indexOf(':');
  if (colon < 0) return [text, ''];
  return [text.slice(0, colon), text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1)];
}
