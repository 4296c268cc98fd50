/** The result of a pass over a string. */
export type ReadString = {
  /** Index of the quote that ends it, or of the end of the JSON text. */
  readonly end: number;
  /** Bytes that `JSON.stringify` spares. */
  readonly spared: number;
  readonly escapes: number;
  /** Those of them that are `\uXXXX`. */
  readonly unicodeEscapes: number;
  /** It is a JSON string (RFC 8259 §7). Its bytes beyond ASCII may be no UTF-8. */
  readonly isValid: boolean;
};

/** Index of the quote that ends a short string without an escape. Undefined: it is longer, or has an escape. */
export function endOfShort(json: Uint8Array, start: number): number | undefined {
  const near = Math.min(json.length, start + NEAR);
  for (let at = start + 1; at < near; at++) {
    if (json[at] === QUOTE) return at;
    if (json[at] === BACKSLASH) return undefined;
  }
  return undefined;
}

/** Reads the string that begins at `start`. */
export function readString(json: Uint8Array, view: DataView, start: number): ReadString {
  let [escapes, unicodeEscapes, spared, isValid] = [0, 0, 0, true];
  let at = nextMark(json, view, start + 1);
  for (; at < json.length && json[at] !== QUOTE; at = nextMark(json, view, at)) {
    if (json[at] !== BACKSLASH) {
      // A control character.
      isValid = false;
      at++;
      continue;
    }
    const escaped = json[at + 1];
    if (escaped === SMALL_U) {
      isValid &&= isHexEscape(json, at);
      spared += sparedByEscape(json, at);
      unicodeEscapes++;
    } else isValid &&= ESCAPED[escaped ?? 0] === 1;
    escapes++;
    at += 2;
  }
  return { end: Math.min(at, json.length), spared, escapes, unicodeEscapes, isValid };
}

/** The text of a string with escapes. */
export function unescaped(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    // The text is not valid, and will not be read.
    return text;
  }
}

/** Most strings are so short that to look at each byte takes less time. */
const NEAR = 32;

/** Index of the next quote, backslash or control character, or of the end. It looks at four bytes at once. */
function nextMark(json: Uint8Array, view: DataView, from: number): number {
  const { length } = json;
  const last = length - 4;
  let at = from;
  while (at <= last && !hasMark(view.getInt32(at, true))) at += 4;
  while (at < length && MARKS[json[at] as number] === 0) at++;
  return at;
}

/**
 * Whether one of four bytes is a mark: a byte below n is one that borrows from its highest bit when n is taken from it ("hasless" in Bit
 * Twiddling Hacks).
 */
function hasMark(four: number): boolean {
  const quote = four ^ 0x22222222;
  const backslash = four ^ 0x5c5c5c5c;
  const below =
    ((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash) | ((four - 0x20202020) & ~four);
  return (below & 0x80808080) !== 0;
}

/** Bytes by which the escape `\uXXXX` at a place is longer than what `JSON.stringify` writes for its character. */
function sparedByEscape(json: Uint8Array, at: number): number {
  const unit = unitAt(json, at);
  if (unit < 0x20) return 0;
  if (unit < 0x80) return unit === QUOTE || unit === BACKSLASH ? 4 : 5;
  if (unit < 0x800) return 4;
  if (unit < 0xd800 || unit > 0xdfff) return 3;
  // Two escapes, 12 bytes, make one character of 4 bytes. A half that is alone stays escaped.
  if (unit > 0xdbff || json[at + 6] !== BACKSLASH || json[at + 7] !== SMALL_U) return 0;
  const low = unitAt(json, at + 6);
  return low >= 0xdc00 && low <= 0xdfff ? 8 : 0;
}

/** Whether an escape `\u` has four hexadecimal digits. */
function isHexEscape(json: Uint8Array, at: number): boolean {
  for (let i = at + 2; i < at + 6; i++) if ((HEX[json[i] ?? 0] ?? 0xff) === 0xff) return false;
  return true;
}

/** The code unit of an escape; 0 if the digits are not hexadecimal. */
function unitAt(json: Uint8Array, at: number): number {
  let unit = 0;
  for (let i = at + 2; i < at + 6; i++) {
    const digit = HEX[json[i] ?? 0] ?? 0xff;
    if (digit === 0xff) return 0;
    unit = unit * 16 + digit;
  }
  return unit;
}

const HEX = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase());
  return digit < 0 ? 0xff : digit;
});

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SMALL_U = 0x75;
const ESCAPED = Uint8Array.from({ length: 256 }, (_, byte) =>
  '"\\/bfnrt'.includes(String.fromCharCode(byte)) ? 1 : 0,
);
const MARKS = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 1 : 0,
);
