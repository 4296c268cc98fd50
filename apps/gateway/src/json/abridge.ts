/** Strings up to this many bytes are kept. */
const STRING_MAX_BYTES = 1_024;
/** This many numbers of a list are kept. */
const NUMBERS_MAX = 8;
/** The longest shortened text. Two thousand embeddings, each with its index, take half of it. */
const ABRIDGED_MAX_BYTES = 1024 * 1024;

/** Up to this many bytes are copied one by one. */
const SHORT_BYTES = 12;

const COMMA = Buffer.from(',');
const SPACE = Buffer.from(' ');
const EMPTY = Buffer.alloc(0);
const [QUOTE, BACKSLASH, SEPARATOR, CLOSE_LIST, CLOSE_OBJECT] = [0x22, 0x5c, 0x2c, 0x5d, 0x7d];
const isOneOf = (characters: string): Uint8Array => {
  const table = new Uint8Array(256);
  for (const byte of Buffer.from(characters)) table[byte] = 1;
  return table;
};
const WHITESPACE = isOneOf(' \t\r\n');
const BRACKETS = isOneOf('[]{}');
const ENDS_NUMBERS = isOneOf('"[]{}');
/** The bytes between these are copied unchanged. */
const MARKS = isOneOf('"[]{}, \t\r\n');

/** Where the next byte of a table is, or the end. */
function nextOf(table: Uint8Array, bytes: Buffer, start: number): number {
  let at = start;
  while (at < bytes.length && !table[bytes[at] as number]) at++;
  return at;
}

/** Whether bytes are only whitespace, which may stand before a JSON text. */
export const isWhitespace = (bytes: Buffer): boolean => bytes.every((byte) => WHITESPACE[byte] === 1);

/**
 * Shortens a JSON text while it arrives, so that usage can be read from an answer of any length in little memory. Usage is made of short
 * names and numbers. Long strings (text, images) become a space, so that they do not look empty. Long lists of numbers (embeddings) lose
 * their tail, and whitespace is removed. Each byte is read once.
 */
export class Abridger {
  #kept: Buffer = EMPTY;
  #length = 0;
  #isTooLong = false;
  /** Where the text of the current string began. Undefined outside strings. */
  #stringAt: number | undefined;
  #isDropped = false;
  /** The last byte was a backslash that escapes the next one. */
  #isEscaped = false;
  /** How many commas there were since the last string or bracket. */
  #numbers = 0;
  #isSkipping = false;

  /** How many bytes the shortened text takes. */
  get size(): number {
    return this.#kept.length;
  }

  /** Takes the next bytes. Returns false when even the shortened text is too long. */
  push(chunk: Buffer): boolean {
    let at = 0;
    while (at < chunk.length && !this.#isTooLong) {
      at =
        this.#stringAt === undefined ? this.#outside(chunk, at) : this.#inString(chunk, at, this.#stringAt);
    }
    return !this.#isTooLong;
  }

  /** Returns the shortened text, or undefined when it is too long. */
  end(): Buffer | undefined {
    return this.#isTooLong ? undefined : this.#kept.subarray(0, this.#length);
  }

  /** Reads up to the next string. Returns where its text begins. */
  #outside(chunk: Buffer, start: number): number {
    let from = start;
    for (let at = start; ; at++) {
      at = nextOf(this.#isSkipping ? ENDS_NUMBERS : MARKS, chunk, at);
      if (at >= chunk.length) break;
      const byte = chunk[at] as number;
      if (this.#isSkipping) {
        this.#isSkipping = false;
        from = at;
        if (byte !== CLOSE_LIST && byte !== CLOSE_OBJECT) this.#keep(COMMA);
      }
      if (byte === QUOTE) {
        this.#keep(chunk, from, at + 1);
        this.#numbers = 0;
        this.#stringAt = this.#length;
        this.#isDropped = false;
        return at + 1;
      }
      if (BRACKETS[byte]) this.#numbers = 0;
      const isTail = byte === SEPARATOR && ++this.#numbers > NUMBERS_MAX;
      if (!isTail && !WHITESPACE[byte]) continue;
      if (at > from) this.#keep(chunk, from, at);
      this.#isSkipping = isTail;
      while (WHITESPACE[chunk[at + 1] ?? QUOTE]) at++;
      from = at + 1;
    }
    if (!this.#isSkipping && from < chunk.length) this.#keep(chunk, from);
    return chunk.length;
  }

  /** Reads a string up to its end. Returns the index after it. */
  #inString(chunk: Buffer, start: number, stringAt: number): number {
    for (let from = start; ; ) {
      const quote = chunk.indexOf(QUOTE, from);
      const end = quote < 0 ? chunk.length : quote;
      let at = end;
      while (at > start && chunk[at - 1] === BACKSLASH) at--;
      // Backslashes escape each other. The last chunk may have ended with a backslash that escapes the first one.
      const isEscaped = ((end - at) % 2 === 1) !== (at === start && this.#isEscaped);
      if (quote >= 0 && isEscaped) {
        from = quote + 1;
        continue;
      }
      this.#keepString(chunk.subarray(start, end), stringAt);
      this.#isEscaped = isEscaped;
      if (quote < 0) return end;
      if (this.#isDropped) this.#keep(SPACE);
      this.#keep(chunk, quote, quote + 1);
      this.#stringAt = undefined;
      return quote + 1;
    }
  }

  #keepString(bytes: Buffer, stringAt: number): void {
    if (this.#length - stringAt + bytes.length > STRING_MAX_BYTES) {
      this.#isDropped = true;
      this.#length = stringAt;
    }
    if (!this.#isDropped) this.#keep(bytes);
  }

  #keep(bytes: Buffer, from = 0, to = bytes.length): void {
    const length = this.#length + to - from;
    this.#isTooLong ||= length > ABRIDGED_MAX_BYTES;
    if (this.#isTooLong) {
      this.#kept = EMPTY;
      return;
    }
    if (length > this.#kept.length) {
      const grown = Buffer.allocUnsafe(Math.max(4_096, 2 * length));
      this.#kept.copy(grown, 0, 0, this.#length);
      this.#kept = grown;
    }
    // A call of `copy` takes as long as a dozen bytes.
    if (to - from > SHORT_BYTES) bytes.copy(this.#kept, this.#length, from, to);
    else for (let i = from; i < to; i++) this.#kept[this.#length + i - from] = bytes[i] as number;
    this.#length = length;
  }
}
