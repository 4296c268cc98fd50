import { endOfShort, readString, unescaped } from './json-strings.ts';
import type { Excess, KnownValue, LeftOutParts, Modesty, NameJudge, Scan, TopValue } from './scan.ts';
import { type BegunValue, Container } from './scan-container.ts';
import { type LongText, longTextOf, placeBelow, type TextPlace } from './text-places.ts';

/**
 * Bytes of a member's name. V8 hashes strings beyond 16,383 characters by their length alone. It then compares each of thousands of
 * names of one length with all others: 60 MB of them would stop the process for half a minute.
 */
const NAME_MAX = 16_000;

/** In a longer string without an escape, a search finds the end sooner than a look at each byte. */
const PLAIN_BYTES = 256;

/** Names of one object that are compared with each other. Those of a larger one are kept in a set. */
const FEW_NAMES = 16;

/**
 * Reads a JSON text once, before it is parsed: 64 MiB of `{},` would stop the process for half a minute, and take gigabytes. The time
 * grows with its length alone.
 * @param most its bounds; undefined if it is known to be within them
 * @param leftOut where it looks for long texts and for values that are known
 */
export function scanJson<P>(
  json: Uint8Array,
  most: Modesty | undefined,
  judge?: NameJudge<P>,
  leftOut: LeftOutParts = {},
): Scan | { readonly excess: Excess } {
  const scanner = new Scanner(json, most, judge, leftOut);
  return scanner.run() ? scanner.result() : { excess: scanner.excess() };
}

/** Counts the parts of a JSON text. Undefined if it exceeds its bounds, or has a very long name. */
export function countParts(json: Uint8Array, most: Modesty): number | undefined {
  const scan = scanJson(json, most);
  return 'excess' in scan ? undefined : scan.parts;
}

/** Whether a JSON text stays within these bounds and has no very long name. */
export const isModest = (json: Uint8Array, most: Modesty): boolean => countParts(json, most) !== undefined;

class Scanner<P> {
  readonly #json: Uint8Array;
  readonly #buffer: Buffer;
  readonly #most: Required<Modesty>;
  readonly #judge: NameJudge<P> | undefined;
  /** One for each depth, used again. The first is never left. */
  readonly #open: Container<P>[] = [new Container()];
  /** Begins and ends of the names of all open objects, outermost first. */
  readonly #spans: number[] = [];
  readonly #members: { name: string; at: number; valueAt: number; end: number }[] = [];
  #depth = 0;
  #parts = 0;
  /** Bytes that a compact text has not. */
  #spared = 0;
  #hasExponent = false;
  #ambiguous: string | undefined;
  /** The string that was read last has an escape. */
  #isEscaped = false;
  readonly #leftOut: LeftOutParts;
  readonly #values: TopValue[] = [];
  /** The value at the top that the scan is within, if its name was asked for, and the counts before it. */
  #begun: BegunValue | undefined;
  #deepest = 0;
  #view: DataView | undefined;
  /** Where the next backslash is, so that each byte is searched once. */
  #backslash = -1;
  readonly #texts: LongText[] = [];

  constructor(
    json: Uint8Array,
    most: Modesty | undefined,
    judge: NameJudge<P> | undefined,
    leftOut: LeftOutParts,
  ) {
    this.#json = json;
    this.#leftOut = leftOut;
    const { depth = Number.POSITIVE_INFINITY, parts = Number.POSITIVE_INFINITY } = most ?? {};
    this.#most = { depth, parts, members: most?.members ?? Number.POSITIVE_INFINITY };
    this.#judge = judge;
    this.#buffer = Buffer.from(json.buffer, json.byteOffset, json.length);
  }

  /** Returns false at the first place that exceeds the bounds. */
  run(): boolean {
    const json = this.#json;
    const { length } = json;
    for (let at = 0; at < length; at++) {
      const byte = json[at] as number;
      if (byte === QUOTE) {
        const end = this.#string(at);
        if (!this.#took(at, end)) return false;
        at = end;
      } else if (byte <= SPACE) this.#spared++;
      else if (byte >= BRACKET_OPEN) {
        if (byte === BRACE_OPEN || byte === BRACKET_OPEN) {
          const known = this.#depth === 1 && this.#leftOut.values ? this.#begin(at) : undefined;
          if (known) at += known.bytes.length - 1;
          else if (!this.#enter(byte === BRACKET_OPEN)) return false;
        } else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) this.#leave(at);
        else if (byte === SMALL_E) this.#letterE(at);
      } else if (byte === COMMA) {
        if (!this.#next(at)) return false;
      } else if (byte === LARGE_E) this.#letterE(at);
    }
    return true;
  }

  result(): Scan {
    const [parts, members, ambiguous, texts] = [this.#parts, this.#members, this.#ambiguous, this.#texts];
    const compactBytes = this.#hasExponent ? undefined : this.#json.length - this.#spared;
    return { parts, compactBytes, members, ambiguous, texts, values: this.#values };
  }

  excess(): Excess {
    return { member: this.#members.at(-1)?.name };
  }

  get #within(): Container<P> {
    return this.#open[this.#depth] as Container<P>;
  }

  /** Index of the quote that ends the string beginning at `start`, or of the end of the text. */
  #string(start: number): number {
    const json = this.#json;
    this.#isEscaped = false;
    const near = endOfShort(json, start);
    if (near !== undefined) return near;
    const { texts } = this.#leftOut;
    const isText = texts !== undefined && this.#isText(this.#within);
    const plain = isText ? undefined : this.#endOfPlain(start);
    if (plain !== undefined) return plain;
    this.#view ??= new DataView(json.buffer, json.byteOffset, json.length);
    const read = readString(json, this.#view, start);
    this.#isEscaped = read.escapes > 0;
    this.#spared += read.spared;
    const text = isText ? longTextOf(json, start, read, texts) : undefined;
    if (text) this.#texts.push({ path: this.#stepsHere(), ...text });
    return read.end;
  }

  /** Index of the quote that ends a long string without an escape, such as an image. Undefined: it may have one. */
  #endOfPlain(start: number): number | undefined {
    if (this.#backslash < start) {
      const at = this.#json.indexOf(BACKSLASH, start);
      this.#backslash = at < 0 ? Number.POSITIVE_INFINITY : at;
    }
    if (this.#backslash < start + PLAIN_BYTES) return undefined;
    const end = this.#json.indexOf(QUOTE, start + 1);
    return end >= 0 && end < this.#backslash ? end : undefined;
  }

  /** Whether a string that begins here may be a long text. */
  #isText(within: Container<P>): boolean {
    return !within.expectsName && this.#textPlaceBelow(within)?.isText === true;
  }

  #textPlaceBelow({ textPlace, isList, nameAt, nameEnd }: Container<P>): TextPlace | undefined {
    if (textPlace === undefined) return undefined;
    return isList ? textPlace.element : placeBelow(textPlace, this.#json, nameAt, nameEnd);
  }

  #took(at: number, end: number): boolean {
    const within = this.#within;
    this.#parts++;
    if (within.expectsName) {
      if (end - at - 1 > NAME_MAX) return false;
      this.#name(within, at + 1, end);
    }
    return this.#parts <= this.#most.parts;
  }

  #name(within: Container<P>, at: number, end: number): void {
    within.expectsName = false;
    within.nameAt = at;
    within.nameEnd = end;
    const { place } = within;
    const isTop = this.#depth === 1;
    const name =
      this.#isEscaped || isTop || place !== undefined || within.names
        ? this.#text(at, end, this.#isEscaped)
        : undefined;
    if (isTop && name !== undefined) this.#members.push({ name, at: at - 1, valueAt: end + 1, end: 0 });
    const isRepeated = this.#repeats(within, name, at, end);
    if (this.#ambiguous !== undefined) return;
    const isUnwanted =
      place !== undefined && name !== undefined && this.#judge?.isUnwanted(place, name) === true;
    if (isRepeated || isUnwanted) this.#ambiguous = this.#pathHere();
  }

  #repeats(within: Container<P>, name: string | undefined, at: number, end: number): boolean {
    const spans = this.#spans;
    if (!within.names) {
      const isMany = spans.length - within.firstName >= 2 * FEW_NAMES;
      if (!isMany && !this.#isEscaped) {
        for (let i = within.firstName; i < spans.length; i += 2)
          if (this.#isSame(spans[i] as number, spans[i + 1] as number, at, end)) return true;
        spans.push(at, end);
        return false;
      }
      within.names = new Set();
      for (let i = within.firstName; i < spans.length; i += 2)
        within.names.add(this.#text(spans[i] as number, spans[i + 1] as number, false));
    }
    const known = name ?? this.#text(at, end, this.#isEscaped);
    if (within.names.has(known)) return true;
    within.names.add(known);
    return false;
  }

  #isSame(from: number, to: number, at: number, end: number): boolean {
    const json = this.#json;
    if (to - from !== end - at) return false;
    for (let i = from, j = at; i < to; i++, j++) if (json[i] !== json[j]) return false;
    return true;
  }

  #enter(isList: boolean): boolean {
    const within = this.#within;
    this.#parts++;
    this.#depth++;
    if (this.#depth > this.#deepest) this.#deepest = this.#depth;
    if (this.#depth > this.#most.depth || this.#parts > this.#most.parts) return false;
    const known = this.#open[this.#depth];
    const entered = known ?? new Container<P>();
    if (!known) this.#open.push(entered);
    entered.isList = isList;
    entered.expectsName = !isList;
    entered.index = 0;
    entered.firstName = this.#spans.length;
    entered.names = undefined;
    entered.textPlace = this.#depth === 1 ? this.#leftOut.texts?.root : this.#textPlaceBelow(within);
    entered.place = this.#depth === 1 ? this.#judge?.root : this.#placeBelow(within);
    return true;
  }

  /** Begins a value at the top. Returns it if its bytes are known. No text in it is left out, and its names are not judged. */
  #begin(at: number): KnownValue | undefined {
    this.#begun = undefined;
    const within = this.#within;
    const { name = '' } = this.#members.at(-1) ?? {};
    if (within.isList || within.expectsName || !this.#leftOut.values?.names.has(name)) return undefined;
    if (this.#textPlaceBelow(within) || this.#placeBelow(within)) return undefined;
    const known = this.#leftOut.values.at(this.#json, at);
    const isWithin = known && known.depth < this.#most.depth && this.#parts + known.parts <= this.#most.parts;
    if (isWithin) {
      this.#values.push({ ...known, name, start: at, end: at + known.bytes.length, known });
      this.#parts += known.parts;
      this.#spared += known.spared;
      this.#hasExponent ||= known.hasExponent;
      return known;
    }
    this.#begun = { at, parts: this.#parts, spared: this.#spared, hadExponent: this.#hasExponent };
    this.#deepest = this.#depth;
    this.#hasExponent = false;
    return undefined;
  }

  #end(end: number): void {
    if (!this.#begun) return;
    const { at: start, parts, spared, hadExponent } = this.#begun;
    this.#values.push({
      ...{ name: this.#members.at(-1)?.name ?? '', start, end, known: undefined },
      ...{ parts: this.#parts - parts, spared: this.#spared - spared, hasExponent: this.#hasExponent },
      depth: this.#deepest - 1,
    });
    this.#hasExponent ||= hadExponent;
    this.#begun = undefined;
  }

  #placeBelow({ place, isList, nameAt, nameEnd }: Container<P>): P | undefined {
    if (place === undefined) return undefined;
    return this.#judge?.below(place, isList ? undefined : this.#text(nameAt, nameEnd, true));
  }

  #leave(at: number): void {
    if (this.#depth === 0) return;
    if (this.#depth === 1) this.#endMember(at);
    this.#spans.length = this.#within.firstName;
    this.#depth--;
    if (this.#depth === 1) this.#end(at + 1);
  }

  #next(at: number): boolean {
    const within = this.#within;
    this.#parts++;
    if (this.#depth === 0) return this.#parts <= this.#most.parts;
    if (this.#depth === 1) this.#endMember(at);
    within.index++;
    within.expectsName = !within.isList;
    const isWide = !within.isList && within.index >= this.#most.members;
    return !isWide && this.#parts <= this.#most.parts;
  }

  #endMember(at: number): void {
    const last = this.#members.at(-1);
    if (!last || last.end > 0) return;
    last.end = at;
    while (WHITESPACE.has(this.#json[last.valueAt] ?? 0) || this.#json[last.valueAt] === COLON)
      last.valueAt++;
  }

  /** A number such as 1e20 is shorter than `JSON.stringify` writes it. */
  #letterE(at: number): void {
    const before = this.#json[at - 1] ?? 0;
    if (before >= ZERO && before <= NINE) this.#hasExponent = true;
  }

  #pathHere(): string {
    let path = '';
    for (const step of this.#stepsHere())
      path = typeof step === 'number' ? `${path}[${step}]` : path === '' ? step : `${path}.${step}`;
    return path;
  }

  /** The names and indexes that lead here. */
  #stepsHere(): (string | number)[] {
    return this.#open
      .slice(1, this.#depth + 1)
      .map(({ isList, index, nameAt, nameEnd }) => (isList ? index : this.#text(nameAt, nameEnd, true)));
  }

  #text(at: number, end: number, mayBeEscaped: boolean): string {
    const text = this.#buffer.toString('utf8', at, end);
    return mayBeEscaped && text.includes('\\') ? unescaped(text) : text;
  }
}

const WHITESPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** The structural characters of JSON (RFC 8259 §2), as bytes. */
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const ZERO = 0x30;
const NINE = 0x39;
const LARGE_E = 0x45;
const BRACKET_OPEN = 0x5b;
const BACKSLASH = 0x5c;
const BRACKET_CLOSE = 0x5d;
const SMALL_E = 0x65;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
