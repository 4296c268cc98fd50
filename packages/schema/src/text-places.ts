import { isAscii } from 'node:buffer';
import { isHexEscape, sparedByEscape } from './json-escapes.ts';

/** Shorter texts are parsed as fast as they are left out. */
const LONG_BYTES = 512;

/** Which long texts a reader of a JSON text can do without. */
export type TextPlaces = {
  readonly root: TextPlace;
  /** The reader must see each text that is not ASCII. */
  readonly onlyAscii: boolean;
};

/** A place within a JSON text: where its names and its elements lead. */
export type TextPlace = {
  readonly names: readonly { readonly bytes: Uint8Array; readonly place: TextPlace }[];
  readonly element: TextPlace | undefined;
  readonly isText: boolean;
};

/** A long text that a scan has found at one of its places, as well-formed JSON. */
export type LongText = {
  /** Names and indexes that lead to it. */
  readonly path: readonly (string | number)[];
  /** Where it begins and ends, without its quotes. */
  readonly start: number;
  readonly end: number;
  /** Its length without the backslashes of its escapes. An ASCII text has so many characters. */
  readonly length: number;
};

/** @param paths names that lead to texts, such as `messages[].content` */
export const textPlaces = (
  paths: readonly string[],
  { onlyAscii }: Pick<TextPlaces, 'onlyAscii'>,
): TextPlaces => ({ root: placeOf(paths.map((path) => path.replaceAll('[]', '.[]').split('.'))), onlyAscii });

function placeOf(paths: readonly (readonly string[])[]): TextPlace {
  const below = new Map<string, (readonly string[])[]>();
  for (const [name, ...rest] of paths)
    if (name !== undefined) below.set(name, [...(below.get(name) ?? []), rest]);
  const element = below.get('[]');
  below.delete('[]');
  return {
    names: Array.from(below, ([name, rests]) => ({ bytes: Buffer.from(name), place: placeOf(rests) })),
    element: element && placeOf(element),
    isText: paths.some(({ length }) => length === 0),
  };
}

/** The place of the member whose name stands between two quotes. A name with an escape leads nowhere. */
export function placeBelow(
  { names }: TextPlace,
  json: Uint8Array,
  at: number,
  end: number,
): TextPlace | undefined {
  for (const { bytes, place } of names) if (isAt(bytes, json, at, end)) return place;
  return undefined;
}

function isAt(bytes: Uint8Array, json: Uint8Array, at: number, end: number): boolean {
  if (bytes.length !== end - at) return false;
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== json[at + i]) return false;
  return true;
}

/** What a pass over a string has found. */
export type TextRead = {
  /** Index of the quote that ends it, or of the end of the JSON text. */
  readonly end: number;
  /** Bytes that `JSON.stringify` spares. */
  readonly spared: number;
  readonly length: number;
  /** Readers may leave it out: it is long, well-formed, and ASCII where that is asked for. */
  readonly canBeLeftOut: boolean;
};

/** Reads the string that begins at `start`, and whether it is a JSON string (RFC 8259 §7). Its bytes beyond ASCII may be no UTF-8. */
export function readText(json: Uint8Array, view: DataView, start: number, onlyAscii: boolean): TextRead {
  let [escapes, spared, isValid, hasUnicode] = [0, 0, true, false];
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
      escapes += 4;
      hasUnicode = true;
    } else isValid &&= ESCAPED[escaped ?? 0] === 1;
    escapes++;
    at += 2;
  }
  const end = Math.min(at, json.length);
  const size = end - start - 1;
  const isLong = isValid && size >= LONG_BYTES;
  const canBeLeftOut = isLong && (!onlyAscii || (!hasUnicode && isAscii(json.subarray(start + 1, end))));
  return { end, spared, length: size - escapes, canBeLeftOut };
}

/** Index of the next quote, backslash or control character, or of the end. It looks at four bytes at once. */
function nextMark(json: Uint8Array, view: DataView, from: number): number {
  const { length } = json;
  const last = length - 4;
  let at = from;
  while (at <= last && !hasMark(view.getInt32(at, true))) at += 4;
  while (at < length && MARKS[json[at] as number] === 0) at++;
  return at;
}

/** Whether one of four bytes is a mark: a byte below n is one that borrows from its highest bit when n is taken from it. */
function hasMark(four: number): boolean {
  const quote = four ^ 0x22222222;
  const backslash = four ^ 0x5c5c5c5c;
  const below =
    ((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash) | ((four - 0x20202020) & ~four);
  return (below & 0x80808080) !== 0;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SMALL_U = 0x75;
const ESCAPED = Uint8Array.from({ length: 256 }, (_, byte) =>
  '"\\/bfnrt'.includes(String.fromCharCode(byte)) ? 1 : 0,
);
const MARKS = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 1 : 0,
);
