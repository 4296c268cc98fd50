const LF = 10;
const CR = 13;

/**
 * Cuts a server-sent event stream into its events as they come, byte for byte, wherever the chunks are cut:
 * an event ends with a blank line, and a line with LF, CR or CRLF (WHATWG HTML §9.2.6).
 */
export class EventSplitter {
  #pending: Buffer[] = [];
  #waiting = 0;
  #lineIsEmpty = true;
  /** The last byte was CR: an LF after it ends no second line (after a blank one it opens the next event). */
  #afterCr = false;

  /** The events that are whole now, each with the blank line that ends it. */
  push(chunk: Buffer): Buffer[] {
    const events: Buffer[] = [];
    let start = 0;
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      const endsLine = byte === CR || (byte === LF && !this.#afterCr);
      if (endsLine && this.#lineIsEmpty) {
        events.push(this.#take(chunk.subarray(start, i + 1)));
        start = i + 1;
      }
      if (endsLine) this.#lineIsEmpty = true;
      else if (byte !== LF) this.#lineIsEmpty = false;
      this.#afterCr = byte === CR;
    }
    if (start < chunk.length) this.#pending.push(chunk.subarray(start));
    this.#waiting += chunk.length - start;
    return events;
  }

  /** Bytes of the event that is not whole yet. */
  get waiting(): number {
    return this.#waiting;
  }

  /** What came after the last whole event. */
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

/** The data and the name of one event; undefined for comments and events without data. */
export function readEvent(bytes: Buffer): { data: string; name: string | undefined } | undefined {
  let data: string | undefined;
  let name: string | undefined;
  for (const line of bytes.toString('utf8').split(/\r\n|\r|\n/)) {
    const [field, value] = fieldOf(line);
    if (field === 'data') data = data === undefined ? value : `${data}\n${value}`;
    else if (field === 'event') name = value;
  }
  return data === undefined ? undefined : { data, name };
}

function fieldOf(line: string): [string, string] {
  const text = line.charCodeAt(0) === 0xfeff ? line.slice(1) : line;
  const colon = text.indexOf(':');
  if (colon < 0) return [text, ''];
  return [text.slice(0, colon), text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1)];
}
