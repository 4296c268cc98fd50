import { CHUNK_OVERHEAD_BYTES } from '../share/body-memory.ts';

const LF = 10;
const CR = 13;
const COLON = 58;
/** The shortest event with data is `data` and two line ends. */
const DATA_BYTES = 6;
/** This many bytes without data pass together. */
const VOIDS_BYTES = 1024;

/** How a stream separates its events, and how to read one. */
export type StreamForm = {
  /** Where an event ends. */
  readonly end: 'blank line' | 'line' | 'length';
  /** The data and the name of one event. Undefined when the bytes hold no data. */
  readonly read: (bytes: Buffer) => StreamEvent | undefined;
};

export type StreamEvent = { readonly data: string; readonly name: string | undefined };

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
  /** The bytes of the current event up to this index have already passed. */
  #isWithin = false;
  #pending: Buffer[] = [];
  #waiting = 0;
  #lineIsEmpty = true;
  /** The current line is a comment, and no field of its event came before it. */
  #lineIsComment = false;
  /** The last byte was CR, so a following LF does not end a second line. */
  #afterCr = false;
  /** The last byte was a CR that ended an event, so an LF after it belongs to that event. */
  #owesLf = false;

  constructor({ end }: Pick<StreamForm, 'end'> = SERVER_SENT) {
    this.#eachLine = end === 'line';
  }

  /**
   * Takes the next bytes. Returns the events that are complete now, each with its last line end. If one chunk ends with CR and the next
   * begins with LF, the event passes with its CR, and the LF passes separately. A reader that needs the LF then does not wait for the next
   * event. A comment before the fields of an event passes when its line ends, because servers send comments to keep a connection alive.
   * Comments and events too short for data pass together, because a chunk may contain 65,536 of them.
   */
  push(chunk: Buffer): Buffer[] {
    if (chunk.length === 0) return [];
    const events: Buffer[] = [];
    let start = 0;
    if (this.#owesLf && chunk[0] === LF) events.push(chunk.subarray(0, ++start));
    // Where the current event began. Undefined if it began in an earlier chunk.
    let begun = this.#waiting === 0 && !this.#isWithin ? start : undefined;
    let line = this.#afterCr && chunk[0] === LF ? 1 : start;
    // Whether a comment is among the bytes that pass before the current event.
    let isCommented = false;
    this.#owesLf = false;
    this.#afterCr = false;
    // Each of the two is searched again only after its last match has passed, so no byte is read more than twice.
    let cr = chunk.indexOf(CR, line);
    let lf = chunk.indexOf(LF, line);
    while (cr >= 0 || lf >= 0) {
      const at = cr >= 0 && (lf < 0 || cr < lf) ? cr : lf;
      let next = at === cr && lf === cr + 1 ? at + 2 : at + 1;
      const isBlank = this.#lineIsEmpty && at === line;
      const isComment = this.#isComment(chunk, line, begun);
      const isShort = isBlank && begun !== undefined && (at === begun || next - begun < DATA_BYTES);
      if (isShort) next = afterLineEnds(chunk, next);
      const isVoid = isShort || isComment;
      const mayGoOn = next === chunk.length && chunk[next - 1] === CR;
      if (this.#eachLine || isBlank || isComment) {
        if (!isVoid && isCommented && begun !== undefined && begun > start) {
          events.push(this.#take(chunk.subarray(start, begun)));
          start = begun;
        }
        this.#isWithin = false;
        isCommented = isComment || (isVoid && isCommented);
        begun = next;
        if (!isVoid || next - start > VOIDS_BYTES) {
          events.push(this.#take(part(chunk, start, next)));
          start = next;
        }
        this.#owesLf = mayGoOn;
      } else this.#afterCr = mayGoOn;
      this.#lineIsEmpty = true;
      this.#lineIsComment = false;
      line = next;
      if (cr >= 0 && cr < next) cr = chunk.indexOf(CR, next);
      if (lf >= 0 && lf < next) lf = chunk.indexOf(LF, next);
    }
    // Events without data at the end.
    if (begun !== undefined && begun > start) {
      events.push(this.#take(chunk.subarray(start, begun)));
      start = begun;
    }
    if (line < chunk.length) {
      this.#lineIsComment = this.#isComment(chunk, line, begun);
      this.#lineIsEmpty = false;
    }
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

  /** Returns the bytes of the incomplete event. The next bytes still belong to it. */
  letGo(): Buffer {
    this.#isWithin = true;
    return this.rest();
  }

  /** Whether the line at this index is a comment at the start of its event. */
  #isComment(chunk: Buffer, line: number, begun: number | undefined): boolean {
    if (this.#eachLine || this.#lineIsComment) return this.#lineIsComment;
    return this.#lineIsEmpty && begun === line && chunk[line] === COLON;
  }

  #take(last: Buffer): Buffer {
    const whole = this.#pending.length === 0 ? last : Buffer.concat([...this.#pending, last]);
    this.#pending = [];
    this.#waiting = 0;
    return whole;
  }
}

/** Most chunks are one event, and need no buffer of their own. */
const part = (chunk: Buffer, start: number, end: number): Buffer =>
  start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end);

/** A chunk may hold 65,536 blank lines, so consecutive blank lines pass together. */
function afterLineEnds(chunk: Buffer, start: number): number {
  let at = start;
  while (chunk[at] === LF || chunk[at] === CR) at++;
  return at;
}

/** More lines at once would delay other calls: a million take more than 100 ms. */
const LINES_MAX = 50_000;

/** Whether an event has too many lines to be read. */
export function hasManyLines(bytes: Buffer): boolean {
  if (bytes.length <= LINES_MAX) return false;
  return [LF, CR].some((end) => {
    let lines = 0;
    let at = bytes.indexOf(end);
    for (; at >= 0 && lines <= LINES_MAX; lines++) at = bytes.indexOf(end, at + 1);
    return lines > LINES_MAX;
  });
}

/** Reads one server-sent event. Undefined for comments, events without data, and events of too many lines. */
export function readEvent(bytes: Buffer): StreamEvent | undefined {
  if (!bytes.includes('data') || hasManyLines(bytes)) return undefined;
  let data: string | undefined;
  let name: string | undefined;
  for (const line of bytes.toString('utf8').split(LINE_END)) {
    const [field, value] = fieldOf(line);
    if (field === 'data') data = data === undefined ? value : `${data}\n${value}`;
    else if (field === 'event') name = value;
  }
  return data === undefined ? undefined : { data, name: name === '' ? undefined : name };
}

/** Whether clients of MCP read a message from an event. An event without a name, or with an empty one, is one (WHATWG HTML §9.2.6). */
export const isMessage = ({ name }: Pick<StreamEvent, 'name'>): boolean =>
  name === undefined || name === 'message';

/** The same event with other data. */
export function replaceData(bytes: Buffer, data: string): Buffer {
  const lines = bytes.toString('utf8').split(LINE_END);
  const others = lines.filter((line) => line !== '' && fieldOf(line)[0] !== 'data');
  const written = data.split(LINE_END).map((line) => `data: ${line}`);
  return Buffer.from([...others, ...written, '', ''].join('\n'));
}

const LINE_END = /\r\n|\r|\n/;

/** Whether an event has an id. With it, a client that loses the stream can request the events after it. */
export const hasId = (bytes: Buffer): boolean =>
  bytes.subarray(0, 3).equals(ID) || bytes.includes('\nid:') || bytes.includes('\rid:');

const ID = Buffer.from('id:');

/** Reads one JSON text. Undefined for a blank line. */
function readLine(bytes: Buffer): StreamEvent | undefined {
  const data = bytes.toString('utf8').trim();
  return data === '' ? undefined : { data, name: undefined };
}

/** Whether only blanks or a comment follow the last event of a stream. A comment whose line has ended has passed already. */
export const isBlank = (rest: Buffer, { end }: Pick<StreamForm, 'end'>): boolean =>
  rest.length === 0 ||
  (end !== 'length' && ((end === 'blank line' && rest[0] === COLON) || !/\S/.test(rest.toString('latin1'))));

function fieldOf(line: string): [string, string] {
  const text = line.charCodeAt(0) === 0xfeff ? line.slice(1) : line;
  const colon = text.indexOf(':');
  if (colon < 0) return [text, ''];
  return [text.slice(0, colon), text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1)];
}

/** Two lengths and their checksum before the headers, and the checksum of the whole after the payload. */
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;

/**
 * Splits a stream of AWS's binary messages (`application/vnd.amazon.eventstream`), byte for byte, wherever its chunks end.
 * A message begins with its own length. https://smithy.io/2.0/aws/amazon-eventstream.html
 */
export class FrameSplitter {
  #pending: Buffer[] = [];
  #waiting = 0;
  /** The length of the message whose bytes are waiting, once four of them are. */
  #length: number | undefined;
  #isLost = false;

  /** Takes the next bytes. Returns the messages that are complete now. */
  push(chunk: Buffer): Buffer[] {
    const frames: Buffer[] = [];
    let rest = chunk;
    while (rest.length > 0 && !this.#isLost) {
      const wanted = (this.#length ?? 4) - this.#waiting;
      const taken = rest.subarray(0, wanted);
      this.#keep(taken);
      rest = rest.subarray(taken.length);
      if (taken.length < wanted) break;
      if (this.#length === undefined) this.#readLength();
      else frames.push(this.rest());
    }
    if (this.#isLost && rest.length > 0) this.#keep(rest);
    return frames;
  }

  /** How many bytes the incomplete message takes, with the overhead of its chunks. Infinite after an impossible length. */
  get waiting(): number {
    return this.#isLost
      ? Number.POSITIVE_INFINITY
      : this.#waiting + this.#pending.length * CHUNK_OVERHEAD_BYTES;
  }

  /** Returns the bytes of the incomplete message. The bytes after them cannot be parsed. */
  letGo(): Buffer {
    this.#isLost = true;
    return this.rest();
  }

  /** Returns the bytes after the last complete message, and forgets them. */
  rest(): Buffer {
    const whole = this.#pending.length === 1 ? this.#pending[0] : Buffer.concat(this.#pending);
    this.#pending = [];
    this.#waiting = 0;
    this.#length = undefined;
    return whole ?? Buffer.alloc(0);
  }

  #keep(bytes: Buffer): void {
    this.#pending.push(bytes);
    this.#waiting += bytes.length;
  }

  #readLength(): void {
    const length = Buffer.concat(this.#pending).readUInt32BE(0);
    this.#length = length;
    this.#isLost = length < PRELUDE_BYTES + CHECKSUM_BYTES;
  }
}

/**
 * Reads the payload of one message as text, and the name of its event or exception. Checksums are not verified: TCP and
 * TLS have their own. Undefined if the message contradicts itself.
 */
export function readFrame(
  bytes: Buffer,
): { readonly data: string; readonly name: string | undefined } | undefined {
  const headersEnd = PRELUDE_BYTES + bytes.readUInt32BE(4);
  const payloadEnd = bytes.length - CHECKSUM_BYTES;
  if (headersEnd > payloadEnd) return undefined;
  const headers = readHeaders(bytes.subarray(PRELUDE_BYTES, headersEnd));
  if (!headers) return undefined;
  const name = headers.get(':event-type') ?? headers.get(':exception-type') ?? headers.get(':error-code');
  return { data: bytes.toString('utf8', headersEnd, payloadEnd), name };
}

/** The length of a header's value by its type. `stated` values begin with their own length. */
const VALUE_BYTES: readonly (number | 'stated')[] = [0, 0, 1, 2, 4, 8, 'stated', 'stated', 8, 16];
const TEXT = 7;

/** The headers that hold text. Undefined if they do not fill their bytes. */
function readHeaders(bytes: Buffer): ReadonlyMap<string, string> | undefined {
  const texts = new Map<string, string>();
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0);
    const type = bytes[nameEnd];
    const size = type === undefined ? undefined : VALUE_BYTES[type];
    if (size === undefined) return undefined;
    if (size === 'stated' && nameEnd + 3 > bytes.length) return undefined;
    const from = nameEnd + (size === 'stated' ? 3 : 1);
    const end = from + (size === 'stated' ? bytes.readUInt16BE(nameEnd + 1) : size);
    if (end > bytes.length) return undefined;
    if (type === TEXT) texts.set(bytes.toString('utf8', at + 1, nameEnd), bytes.toString('utf8', from, end));
    at = end;
  }
  return texts;
}
