import type { Encoding } from '../facts/fact.ts';
import type { CountTokens } from '../spend.ts';

/**
 * Counts tokens by an encoding's ranks. The count is an upper bound, whatever stands before and after the text. It is exact
 * between sure boundaries, where every pattern begins a new piece: between a letter and a character that is no letter, mark
 * or apostrophe. Everything else counts as one token for each byte: the text before the first boundary and after the last,
 * pieces that are too long to merge, characters that versions of Unicode class differently, and marks of special tokens.
 * The work is linear in the text.
 * @param ranks the encoding's `.tiktoken` file
 */
export function tokenCounter(encoding: Encoding, ranks: Uint8Array): CountTokens {
  kinds ??= readKinds();
  const merge = mergeBy(readRanks(ranks));
  const pattern = PATTERNS[encoding];
  const exactly = (text: string): number => {
    let count = 0;
    for (const [piece] of text.matchAll(pattern)) count += merge(piece);
    return count;
  };
  return (text) =>
    text.isWellFormed() ? countBetween(text, exactly) : Buffer.byteLength(JSON.stringify(text));
}

/** tiktoken's patterns. Contractions ignore case there, so `'ſ` is one, too; U+017F is not in `SURE`. */
const PATTERNS: Readonly<Record<Encoding, RegExp>> = {
  o200k_base: new RegExp(
    [
      "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?:'(?:[sStTmMdD]|[rRvV][eE]|[lL][lL]))?",
      "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?:'(?:[sStTmMdD]|[rRvV][eE]|[lL][lL]))?",
      '\\p{N}{1,3}',
      ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*',
      '\\s*[\\r\\n]+',
      '\\s+(?!\\S)',
      '\\s+',
    ].join('|'),
    'gu',
  ),
  cl100k_base: new RegExp(
    [
      "'(?:[sStTmMdD]|[rRvV][eE]|[lL][lL])",
      '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+',
      '\\p{N}{1,3}',
      ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*',
      '\\s+$',
      '\\s*[\\r\\n]',
      '\\s+(?!\\S)',
      '\\s',
    ].join('|'),
    'gu',
  ),
};

/** Counts a text from one sure boundary to the next: `exactly`, or by its bytes where the count is not sure. */
function countBetween(text: string, exactly: CountTokens): number {
  let count = 0;
  let start = 0;
  let boundary = 0;
  // The text may follow another one, so its first piece is not sure.
  let isSure = false;
  const end = (at: number) => {
    const part = text.slice(start, at);
    count += isSure ? exactly(part) : Buffer.byteLength(part);
    start = at;
  };
  let before = UNSURE;
  for (let i = 0; i < text.length; i++) {
    const kind = kindAt(text, i);
    if (isSure && (kind === UNSURE || i - boundary > EXACT_CHARS)) {
      end(boundary);
      isSure = false;
    }
    if (before === LETTER && kind === STOP) {
      if (!isSure) {
        end(i);
        isSure = true;
      } else if (i - start > EXACT_CHARS) end(boundary);
      boundary = i;
    }
    before = kind;
  }
  if (isSure) end(boundary);
  return count + Buffer.byteLength(text.slice(start));
}

/** Characters that are matched at once. Patterns may read a run of whitespace twice. */
const EXACT_CHARS = 2_048;

const UNSURE = 0;
const LETTER = 1;
/** A piece that contains a letter ends before such a character. */
const STOP = 2;
const INSIDE = 3;

function kindAt(text: string, i: number): number {
  const unit = text.charCodeAt(i);
  if (unit === BAR && (text.charCodeAt(i - 1) === LESS || text.charCodeAt(i + 1) === GREATER)) return UNSURE;
  if (unit < 0xd800 || unit > 0xdfff) return kinds?.[unit] ?? UNSURE;
  const point = unit < 0xdc00 ? text.codePointAt(i) : text.codePointAt(i - 1);
  return point !== undefined && isIn(EMOJI, point) ? INSIDE : UNSURE;
}

/** Special tokens look like `<|endoftext|>`, and a provider may split the text at one. */
const [BAR, LESS, GREATER] = [0x7c, 0x3c, 0x3e];

type Ranges = readonly (readonly [first: number, last: number])[];

const isIn = (ranges: Ranges, point: number) =>
  ranges.some(([first, last]) => point >= first && point <= last);

/**
 * Characters whose class has been the same in all versions of Unicode since 6.0 and in every engine. Engines differ:
 * `\s` contains U+FEFF in JavaScript and U+0085 in Rust.
 */
const SURE: Ranges = [
  ...([
    [0x00, 0x84],
    [0x86, 0x17e],
    [0x180, 0x24f],
  ] as const), // Latin
  ...([
    [0x391, 0x3a1],
    [0x3a3, 0x3ce],
    [0x386, 0x386],
    [0x388, 0x38a],
    [0x38c, 0x38c],
    [0x38e, 0x38f],
  ] as const), // Greek
  ...([
    [0x400, 0x481],
    [0x48a, 0x4ff],
  ] as const), // Cyrillic
  ...([
    [0x5b0, 0x5bd],
    [0x5d0, 0x5ea],
  ] as const), // Hebrew
  ...([
    [0x60c, 0x60c],
    [0x61b, 0x61b],
    [0x61f, 0x61f],
    [0x621, 0x63a],
    [0x640, 0x652],
    [0x660, 0x669],
    [0x671, 0x6d3],
  ] as const), // Arabic
  ...([
    [0x901, 0x939],
    [0x93c, 0x94d],
    [0x958, 0x970],
  ] as const), // Devanagari
  ...([
    [0xe01, 0xe3a],
    [0xe3f, 0xe5b],
  ] as const), // Thai
  ...([
    [0x1e00, 0x1e9b],
    [0x1ea0, 0x1ef9],
  ] as const), // Latin of Vietnamese
  ...([
    [0x2000, 0x200a],
    [0x2010, 0x2027],
    [0x2030, 0x205e],
    [0x20a0, 0x20b5],
    [0x2190, 0x22ff],
    [0x2500, 0x25ff],
  ] as const), // signs
  ...([
    [0x3000, 0x3002],
    [0x3008, 0x3011],
    [0x3041, 0x3094],
    [0x3099, 0x309e],
    [0x30a1, 0x30fe],
  ] as const), // Japanese
  ...([
    [0x4e00, 0x9fa5],
    [0xac00, 0xd7a3],
    [0xfe0f, 0xfe0f],
    [0xff01, 0xff5e],
  ] as const), // Chinese, Korean, wide forms
];
const EMOJI: Ranges = [
  [0x1f300, 0x1f320],
  [0x1f400, 0x1f43e],
  [0x1f600, 0x1f64f],
  [0x1f680, 0x1f6c5],
];

/** The kind of each UTF-16 unit. The first counter makes it, because most processes count nothing. */
let kinds: Uint8Array | undefined;

const readKinds = () =>
  Uint8Array.from({ length: 0x10000 }, (_, unit) => (isIn(SURE, unit) ? kindOf(unit) : UNSURE));

function kindOf(unit: number): number {
  const character = String.fromCharCode(unit);
  if (/\p{L}/u.test(character)) return LETTER;
  return character === "'" || /\p{M}/u.test(character) ? INSIDE : STOP;
}

/** The rank of some bytes, or -1. */
type RankOf = (bytes: Uint8Array, from: number, to: number) => number;

/** Reads `.tiktoken`, one `base64 rank` a line, into tables of a few megabytes. */
function readRanks(file: Uint8Array): RankOf {
  const lines = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
    .toString('latin1')
    .trimEnd()
    .split('\n');
  const size = 2 ** Math.ceil(Math.log2(lines.length * 2));
  const slots = new Int32Array(size).fill(-1);
  const ends = new Uint32Array(lines.length + 1);
  const keys = new Uint8Array(file.length);
  const ranks = new Int32Array(lines.length);
  let longest = 0;
  for (const [i, line] of lines.entries()) {
    const space = line.indexOf(' ');
    const from = ends[i] ?? 0;
    const to = from + Buffer.from(line.slice(0, space), 'base64').copy(keys, from);
    longest = Math.max(longest, to - from);
    ends[i + 1] = to;
    ranks[i] = Number(line.slice(space + 1));
    let slot = hash(keys, from, to) & (size - 1);
    while ((slots[slot] ?? -1) >= 0) slot = (slot + 1) & (size - 1);
    slots[slot] = i;
  }
  const all = keys.slice(0, ends[lines.length]);
  return (bytes, from, to) => {
    if (to - from > longest) return -1;
    for (let slot = hash(bytes, from, to) & (size - 1); ; slot = (slot + 1) & (size - 1)) {
      const entry = slots[slot] ?? -1;
      if (entry < 0) return -1;
      if (isSame(all, ends[entry] ?? 0, ends[entry + 1] ?? 0, bytes, from, to)) return ranks[entry] ?? -1;
    }
  };
}

/** FNV-1a (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv), its high bits mixed in. */
function hash(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0x811c9dc5;
  for (let i = from; i < to; i++) sum = Math.imul(sum ^ (bytes[i] ?? 0), 0x01000193);
  return sum ^ (sum >>> 15);
}

function isSame(a: Uint8Array, aFrom: number, aTo: number, b: Uint8Array, from: number, to: number): boolean {
  if (aTo - aFrom !== to - from) return false;
  for (let i = 0; i < to - from; i++) if (a[aFrom + i] !== b[from + i]) return false;
  return true;
}

/**
 * Counts the tokens of one piece. The pair with the lowest rank merges first, and of two equal pairs the left one. A heap
 * finds that pair, because a search of all pairs for each merge takes time that grows with the square of the piece.
 */
function mergeBy(rankOf: RankOf): (piece: string) => number {
  const bytes = new Uint8Array(3 * EXACT_CHARS);
  const encoder = new TextEncoder();
  const ends = new Int32Array(bytes.length + 1);
  const previous = new Int32Array(bytes.length + 1);
  const heap = new Float64Array(3 * bytes.length);
  return (piece) => {
    const length = encoder.encodeInto(piece, bytes).written;
    if (length < 2 || rankOf(bytes, 0, length) >= 0) return 1;
    let waiting = 0;
    const offer = (from: number) => {
      const end = ends[from] ?? length;
      const rank = end < length ? rankOf(bytes, from, ends[end] ?? length) : -1;
      if (rank >= 0) push(heap, waiting++, rank * PLACES + from);
    };
    for (let i = 0; i <= length; i++) {
      ends[i] = i + 1;
      previous[i] = i - 1;
    }
    for (let i = 0; i < length - 1; i++) offer(i);
    let parts = length;
    while (waiting > 0) {
      const least = heap[0] ?? 0;
      pop(heap, waiting--);
      const from = least % PLACES;
      const middle = ends[from] ?? length;
      // The pair may have merged with a neighbour since it was offered.
      if (middle <= from || middle >= length) continue;
      const to = ends[middle] ?? length;
      if (rankOf(bytes, from, to) !== (least - from) / PLACES) continue;
      ends[from] = to;
      ends[middle] = GONE;
      previous[to] = from;
      parts--;
      offer(from);
      if (from > 0) offer(previous[from] ?? 0);
    }
    return parts;
  };
}

/** A heap entry is `rank * PLACES + place`. A piece has fewer bytes, and the product is a safe integer. */
const PLACES = 2 ** 16;
/** The end of a part that was merged into the one before it. */
const GONE = -1;

function push(heap: Float64Array, length: number, value: number): void {
  let at = length;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent] ?? 0;
    if (above <= value) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = value;
}

/** Removes the least value of a heap of this length. */
function pop(heap: Float64Array, length: number): void {
  const last = heap[length - 1] ?? 0;
  let at = 0;
  for (let child = 1; child < length - 1; child = 2 * at + 1) {
    if (child + 1 < length - 1 && (heap[child + 1] ?? 0) < (heap[child] ?? 0)) child++;
    const below = heap[child] ?? 0;
    if (below >= last) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = last;
}
