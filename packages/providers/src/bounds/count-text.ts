import { isJsonObject } from '../json.ts';

/**
 * Most tokens by which normalising a text can outgrow its UTF-8 bytes. Tokenizers that split bytes make at most one token of each. But
 * some normalise first: Qwen's to NFC (`normalizer` in its tokenizer.json), and SentencePiece's `nmt_nfkc` to NFKC, which writes
 * U+FDFA, 3 bytes, as 33.
 */
export function grownByNormalising(text: string): number {
  const bytes = Buffer.byteLength(text);
  if (bytes === text.length) return 0;
  if (bytes <= LONG && isInert(text)) return 0;
  if (bytes > LONG || hasLongMarkRun(text)) return bytes * NORMALISED_MOST;
  return Math.max(0, ...FORMS.map((form) => Buffer.byteLength(text.normalize(form)) - bytes));
}

/** The growth of all strings and names of a value. */
export function grownByNormalisingAll(value: unknown): number {
  if (typeof value === 'string') return grownByNormalising(value);
  if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + grownByNormalisingAll(each), 0);
  if (!isJsonObject(value)) return 0;
  let grown = 0;
  for (const name of Object.keys(value))
    grown += grownByNormalising(name) + grownByNormalisingAll(value[name]);
  return grown;
}

/** Whether no character of a text is changed by normalising, or is a mark that may join the one before it. Most texts are inert. */
function isInert(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    let code = text.charCodeAt(i);
    if (code < 0x80) continue;
    if (code >= 0xd800 && code < 0xe000) {
      code = text.codePointAt(i) ?? 0;
      if (code > 0xffff) i++;
    }
    if (code >= INERT.length || (INERT[code] || judgeInert(code)) !== YES) return false;
  }
  return true;
}

/** By code point, as far as the planes that text uses. 0: not asked for yet. */
const INERT = new Uint8Array(0x20000);
const YES = 1;
const NO = 2;

function judgeInert(code: number): number {
  const character = String.fromCodePoint(code);
  const isChanged = MARK.test(character) || FORMS.some((form) => character.normalize(form) !== character);
  const judged = isChanged ? NO : YES;
  INERT[code] = judged;
  return judged;
}

const FORMS = ['NFC', 'NFKC'] as const;

/**
 * Whether a text has more than `MARKS_MOST` combining marks in a row. Normalising sorts such a run, in time that
 * grows with the square of its length (UAX #15 §12.1): 17,000 of them take seconds. Real text has a few.
 */
export function hasLongMarkRun(text: string): boolean {
  if (text.length <= MARKS_MOST) return false;
  let run = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < FIRST_MARK) run = 0;
    else if (unit >= 0xd800 && unit < 0xdc00) {
      run = MARK.test(String.fromCodePoint(text.codePointAt(i) ?? 0)) ? run + 1 : 0;
      i++;
    } else run = BMP_MARKS[unit] === 1 ? run + 1 : 0;
    if (run > MARKS_MOST) return true;
  }
  return false;
}

/** UAX #15 §12 (the Stream-Safe Text Format) allows 30; no language needs more. */
const MARKS_MOST = 64;
const FIRST_MARK = 0x300;
/** The halfwidth voiced sound marks are letters, but NFKC makes combining marks of them. */
const MARK = /[\p{M}\uff9e\uff9f]/u;
const BMP_MARKS = Uint8Array.from({ length: 0x10000 }, (_, unit) =>
  MARK.test(String.fromCharCode(unit)) ? 1 : 0,
);

/** The growth of a value as JSON, or of a JSON text. A frozen value is one that calls share: its growth is kept as long as it is. */
export function grownByRewritingValue(value: unknown): number {
  if (typeof value === 'string') return grownByRewriting(value);
  const shared = typeof value === 'object' && value !== null && Object.isFrozen(value) ? value : undefined;
  const known = shared && GROWN.get(shared);
  if (known !== undefined) return known;
  const grown = grownByRewriting(JSON.stringify(value) ?? '');
  if (shared) GROWN.set(shared, grown);
  return grown;
}

const GROWN = new WeakMap<object, number>();

/**
 * Most bytes by which a JSON text can grow when a chat template rewrites it. Templates indent by four spaces (Llama 3.1), write `<>&'`
 * and all beyond ASCII as \uXXXX (`tojson` of Jinja, Python's json.dumps), put a comment mark after each line break, and write numbers
 * out (Python has 1e15 as 1000000000000000.0). It need not be valid JSON: a model writes the arguments of a call.
 */
export function grownByRewriting(json: string): number {
  if (json.length > LONG) return json.length * (1 + INDENT * DEEP);
  // As bytes, because reading a text by characters takes five times as long.
  const bytes = Buffer.from(json);
  const { length } = bytes;
  let depth = 0;
  let grown = 0;
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] as number;
    if (byte === QUOTE) {
      for (i++; i < length && bytes[i] !== QUOTE; i++) {
        const inner = bytes[i] as number;
        const rewritten = REWRITTEN_UNITS[inner] as number;
        if (rewritten !== 0) grown += rewritten * REWRITTEN;
        else if (inner === BACKSLASH && (bytes[i + 1] ?? 0) < 0x80 && bytes[++i] === SMALL_N)
          grown += REWRITTEN;
      }
    } else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) grown += 1 + INDENT * ++depth;
    else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) {
      depth = Math.max(0, depth - 1);
      grown += 1 + INDENT * depth;
    } else if (byte === COMMA) grown += 1 + INDENT * depth;
    else if (byte === COLON) grown += 1;
    else if ((byte | 0x20) === SMALL_E && endsNumber(bytes[i - 1])) grown += WRITTEN_OUT;
  }
  return grown;
}

/** A digit or a point. */
const endsNumber = (byte = 0) => (byte >= 0x30 && byte <= 0x39) || byte === 0x2e;

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const [BRACKET_OPEN, BRACKET_CLOSE, BRACE_OPEN, BRACE_CLOSE] = [0x5b, 0x5d, 0x7b, 0x7d];
const [SMALL_E, SMALL_N] = [0x65, 0x6e];
/** How many `\uXXXX` a `tojson` writes for the character that begins with a byte: two for one beyond the first plane. */
const REWRITTEN_UNITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte < 0x80) return "<>&'".includes(String.fromCharCode(byte)) ? 1 : 0;
  return byte < 0xc0 ? 0 : byte < 0xf0 ? 1 : 2;
});

/** Whether a value is nested no deeper than this. Recursion over deeper values would exhaust the stack. */
export function nestedWithin(value: unknown, levels: number): boolean {
  if (!Array.isArray(value) && !isJsonObject(value)) return true;
  return levels > 0 && Object.values(value).every((inner) => nestedWithin(inner, levels - 1));
}

/** Texts with more characters are not counted: their growth is taken at its maximum, since no window holds them. */
const LONG = 2 * 1024 * 1024;
/** NFKC has no worse than U+FDFA, 11 times as long (https://unicode.org/faq/normalization.html). */
const NORMALISED_MOST = 10;
/** Deeper than any body may nest. */
const DEEP = 1_000;

/** `\uXXXX` for one byte. Characters of more bytes grow less. */
const REWRITTEN = 5;
/** 1e15 has 4 bytes, 1000000000000000.0 has 18. */
const WRITTEN_OUT = 16;
const INDENT = 4;
