import { isAscii } from 'node:buffer';
import type { ReadString } from './json-strings.ts';

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
  /** Its bytes, with each escape as one. An ASCII text has so many characters. */
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

/** The text that a string is, if readers may leave it out: it is long, well-formed, and ASCII where that is asked for. */
export function longTextOf(
  json: Uint8Array,
  start: number,
  { end, escapes, unicodeEscapes, isValid }: ReadString,
  { onlyAscii }: TextPlaces,
): Omit<LongText, 'path'> | undefined {
  const size = end - start - 1;
  if (!isValid || size < LONG_BYTES) return undefined;
  if (onlyAscii && (unicodeEscapes > 0 || !isAscii(json.subarray(start + 1, end)))) return undefined;
  return { start: start + 1, end, length: size - escapes - 4 * unicodeEscapes };
}
