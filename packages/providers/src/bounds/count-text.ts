import { isJsonObject } from '../json.ts';

/**
 * Most tokens by which normalising a text can outgrow its UTF-8 bytes. Tokenizers that split bytes make at most
 * one token of each, but some normalise first: Qwen's to NFC (`normalizer` in its tokenizer.json), and
 * SentencePiece's `nmt_nfkc` to NFKC, which writes U+FDFA, 3 bytes, as 33.
 */
export function grownByNormalising(text: string): number {
  const bytes = Buffer.byteLength(text);
  if (bytes === text.length) return 0;
  if (bytes > LONG || hasLongMarkRun(text)) return bytes * NORMALISED_MOST;
  const forms = ['NFC', 'NFKC'] as const;
  return Math.max(0, ...forms.map((form) => Buffer.byteLength(text.normalize(form)) - bytes));
}

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

/**
 * Most bytes by which a JSON text can grow when a chat template rewrites it: indented by four spaces (Llama
 * 3.1's template), its `<>&'` and all beyond ASCII as \uXXXX (the `tojson` of Jinja and Python's json.dumps),
 * line breaks as a comment's, and numbers written out (Python has 1e15 as 1000000000000000.0).
 * It need not be valid JSON: a model writes the arguments of a call.
 */
export function grownByRewriting(json: string): number {
  if (json.length > LONG) return json.length * (1 + INDENT * DEEP);
  let depth = 0;
  let inString = false;
  let grown = 0;
  for (let i = 0; i < json.length; i++) {
    const character = json[i] ?? '';
    if (inString) {
      if (character === '"') inString = false;
      else if (character === '\\') {
        if (json[i + 1] === 'n') grown += REWRITTEN;
        i++;
      } else if (character > '\x7f' || "<>&'".includes(character)) grown += REWRITTEN;
      continue;
    }
    if (character === '"') inString = true;
    else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') depth = Math.max(0, depth - 1);
    grown += structure(character, json[i - 1] ?? '', depth);
  }
  return grown;
}

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

/** Growth at a character outside strings: a line break and its indent, a space, digits. */
function structure(character: string, before: string, depth: number): number {
  if ('{[,]}'.includes(character)) return 1 + INDENT * depth;
  if (character === ':') return 1;
  if ((character === 'e' || character === 'E') && /[\d.]/.test(before)) return WRITTEN_OUT;
  return 0;
}
