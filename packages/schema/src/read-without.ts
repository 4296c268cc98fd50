import { isUtf8 } from 'node:buffer';
import { readJson } from './json.ts';
import type { LongText } from './text-places.ts';

/**
 * A long text that was not read: its length, and its index among the texts of its scan (`LongText`). JSON has no value of this type, so
 * that no reader takes it for a text unless it asks for it, and `JSON.stringify` throws.
 */
export type LeftOut = bigint;

/** A body has fewer than 2^21 long texts, so both fit in a number that is exact. */
const LENGTHS = 2 ** 32;

export const lengthLeftOut = (text: LeftOut): number => Number(text) % LENGTHS;

export const indexLeftOut = (text: LeftOut): number => Math.floor(Number(text) / LENGTHS);

/**
 * Reads strict UTF-8 and JSON without its long texts, so that neither decoding nor parsing them takes time or memory. The JSON is valid if
 * and only if the rest is, because a scan has found each text well-formed.
 * @param texts that a scan of these bytes has found. Their names must not be ambiguous
 * @returns undefined when the bytes are not JSON
 */
export function readWithout(
  bytes: Uint8Array,
  texts: readonly LongText[],
): { readonly value: unknown } | undefined {
  if (!isUtf8(bytes)) return undefined;
  const read = readJson(around(bytes, texts));
  if (!read) return undefined;
  for (const [index, { path, length }] of texts.entries()) {
    const holder = path.slice(0, -1).reduce<unknown>((at, step) => (at as Held)[step], read.value) as Held;
    holder[path.at(-1) as string] = BigInt(index * LENGTHS + length) satisfies LeftOut;
  }
  return read;
}

type Held = Record<string | number, unknown>;

/** The bytes with nothing between the quotes of these texts. */
function around(bytes: Uint8Array, texts: readonly LongText[]): Uint8Array {
  const size = texts.reduce((left, { start, end }) => left - (end - start), bytes.length);
  const rest = Buffer.allocUnsafe(size);
  let [from, to] = [0, 0];
  for (const { start, end } of texts) {
    rest.set(bytes.subarray(from, start), to);
    to += start - from;
    from = end;
  }
  rest.set(bytes.subarray(from), to);
  return rest;
}
