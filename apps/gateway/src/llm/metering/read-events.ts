import { type Reported, STATED_TWICE, type StreamReader, statesTwice, type Usage } from '@presign/providers';
import { isModest, type Modesty } from '@presign/schema';
import { isBlank, type StreamEvent, type StreamForm, splitterOf } from '../../http/sse.ts';
import { type Reservation, SMALL_BODY_BYTES } from '../../share/body-memory.ts';
import { LongEvent } from './long-event.ts';

/** Bytes of a stream on their way to the holder. */
export type Piece = {
  readonly bytes: Buffer;
  /** They are part of an event that is too long to wait for. */
  readonly isPart: boolean;
  /** The event that ends with these bytes, if it matters to the reader of the usage. */
  readonly event: StreamEvent | undefined;
};

/** The longest event that is stored. The bytes of a longer event pass before its end, and its text is shortened. */
const EVENT_MAX_BYTES = 4 * 1024 * 1024;

/** Parsing a JSON text within these bounds takes at most some 10 ms. */
export const MODEST: Modesty = { depth: 200, parts: 100_000 };

/** Reads the usage of a stream, event by event, in bounded memory. */
export class EventReading {
  readonly #form: StreamForm;
  readonly #reader: StreamReader | undefined;
  readonly #splitter: ReturnType<typeof splitterOf>;
  readonly #hasRoom: (waiting: number) => boolean;
  readonly #pass: (piece: Piece) => void;
  #long: LongEvent | undefined;
  /** The rest of the stream is not split into events. */
  #isUnread = false;
  /** One of the events could not be parsed, so no usage is reported. */
  #isLost = false;
  #isStatedTwice = false;

  /**
   * @param memory for waiting bytes; the caller releases it
   * @param pass gets bytes that have been read and need not wait for the rest of their event
   */
  constructor(
    form: StreamForm,
    reader: StreamReader | undefined,
    memory: Reservation,
    pass: (piece: Piece) => void,
  ) {
    this.#form = form;
    this.#reader = reader;
    this.#splitter = splitterOf(form);
    this.#hasRoom = roomFor(memory);
    this.#pass = pass;
  }

  /** Takes the next bytes. */
  push(chunk: Buffer): void {
    if (this.#isUnread) {
      this.#pass({ bytes: chunk, isPart: true, event: undefined });
      return;
    }
    for (const bytes of this.#splitter.push(chunk)) this.#read(bytes);
    const { waiting } = this.#splitter;
    const isLong = this.#long !== undefined || waiting > EVENT_MAX_BYTES || !this.#hasRoom(waiting);
    if (isLong && waiting > 0) this.#shorten();
  }

  /**
   * Reads the bytes after the last event when the stream has ended. A whole event without its last line end counts, because SDKs read it
   * (`openai` 7.57, core/streaming, `flush`). A partial event means that the stream was cut off, so its usage is unknown.
   */
  end(): void {
    const bytes = this.#splitter.rest();
    const hasMore = this.#long !== undefined || !isBlank(bytes, this.#form);
    const event = !this.#isUnread && hasMore ? this.#lastEvent(bytes) : undefined;
    if (event && isWhole(event.data)) this.#see(event);
    else if (hasMore) this.#isLost = true;
    if (bytes.length > 0) this.#pass({ bytes, isPart: false, event });
  }

  /** The usage, once the stream has reported it in full. */
  reported(): Reported | undefined {
    if (this.#isLost) return undefined;
    return this.#isStatedTwice ? STATED_TWICE : attempt(() => this.#reader?.end());
  }

  /** The usage of the whole input, once the stream has stated it. */
  input(): Usage | undefined {
    return this.#isLost || this.#isStatedTwice ? undefined : attempt(() => this.#reader?.input?.());
  }

  /** Whether the rest of the stream can still report usage. */
  get isReading(): boolean {
    return this.#reader !== undefined && !this.#isLost;
  }

  #read(bytes: Buffer): void {
    const event = this.#long ? this.#endLong(this.#long, bytes) : this.#eventIn(bytes);
    if (event) this.#see(event);
    this.#pass({ bytes, isPart: false, event });
  }

  #eventIn(bytes: Buffer): StreamEvent | undefined {
    const matters = this.isReading && (this.#reader?.matters?.(bytes) ?? true);
    return matters ? readEvent(this.#form, bytes) : undefined;
  }

  #lastEvent(bytes: Buffer): StreamEvent | undefined {
    if (this.#long) return this.#endLong(this.#long, bytes);
    return this.#form.end === 'length' ? undefined : readEvent(this.#form, bytes);
  }

  #see({ data, name }: StreamEvent): void {
    this.#isStatedTwice ||= statesTwice(data);
    this.#isLost ||= attempt(() => [this.#reader?.event(data, name)]) === undefined;
  }

  #endLong(long: LongEvent, last: Buffer): StreamEvent | undefined {
    this.#long = undefined;
    const isShortened = long.push(last);
    const event = isShortened ? long.end() : undefined;
    const isRead = isShortened && (event === undefined || isModest(Buffer.from(event.data), MODEST));
    this.#isLost ||= !isRead;
    return isRead ? event : undefined;
  }

  /** Passes the bytes of an event that is too long to store, and keeps its shortened text. */
  #shorten(): void {
    const bytes = this.#splitter.letGo();
    this.#long ??= this.isReading && this.#form.end !== 'length' ? new LongEvent(this.#form) : undefined;
    this.#isUnread = !this.#long?.push(bytes) || !this.#hasRoom(this.#long.size);
    this.#isLost ||= this.#isUnread;
    this.#pass({ bytes, isPart: true, event: undefined });
  }
}

/** The final marker of several APIs, or a complete JSON text. */
const isWhole = (data: string): boolean =>
  data.trim() === '[DONE]' || attempt(() => [JSON.parse(data)]) !== undefined;

/** Reads one event. The JSON of a large event with very many parts is not parsed and counts as unreadable. */
const readEvent = (form: StreamForm, bytes: Buffer): StreamEvent | undefined =>
  bytes.length > SMALL_BODY_BYTES && !isModest(bytes, MODEST)
    ? { data: '{', name: undefined }
    : form.read(bytes);

/** Returns whether the memory has room for this many waiting bytes. The reservation only grows. */
export function roomFor(memory: Reservation): (waiting: number) => boolean {
  let reserved = 0;
  return (waiting) => {
    const more = waiting - reserved;
    if (more <= 0) return true;
    if (!memory.reserve(more)) return false;
    reserved = waiting;
    return true;
  };
}

/** Returns undefined if the reader throws, because a call must be settled whatever its answer contains. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
