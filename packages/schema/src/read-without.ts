import { isUtf8 } from 'node:buffer';
import { readJson } from './json.ts';
import type { Scan } from './scan.ts';

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
 * Reads strict UTF-8 and JSON without its long texts and known values, so that neither decoding nor parsing them takes time or memory. The
 * JSON is valid if and only if the rest is, because a scan has found each text well-formed, and each value was read before.
 * @param scan of these bytes. Their names must not be ambiguous
 * @returns undefined when the bytes are not JSON
 */
export function readWithout(
  bytes: Uint8Array,
  { texts, values }: Pick<Scan, 'texts' | 'values'>,
): { readonly value: unknown } | undefined {
  if (!isUtf8(bytes)) return undefined;
  const known = values.filter((each) => each.known !== undefined);
  const read = readJson(around(bytes, texts, known));
  if (!read) return undefined;
  for (const [index, { path, length }] of texts.entries()) {
    const holder = path.slice(0, -1).reduce<unknown>((at, step) => (at as Held)[step], read.value) as Held;
    holder[path.at(-1) as string] = BigInt(index * LENGTHS + length) satisfies LeftOut;
  }
  for (const each of known) (read.value as Held)[each.name] = each.known?.value;
  return read;
}

type Held = Record<string | number, unknown>;
type Place = { readonly start: number; readonly end: number };

/** The bytes with nothing in place of some texts, and with a number in place of some values. */
function around(bytes: Uint8Array, texts: readonly Place[], values: readonly Place[]): Uint8Array {
  const left = [...texts, ...values.map(({ start, end }) => ({ start: start + 1, end, isValue: true }))];
  if (values.length > 0) left.sort((one, other) => one.start - other.start);
  const size = left.reduce((sum, { start, end }) => sum - (end - start), bytes.length);
  const rest = Buffer.allocUnsafe(size);
  let [from, to] = [0, 0];
  for (const each of left) {
    rest.set(bytes.subarray(from, each.start), to);
    to += each.start - from;
    from = each.end;
    // Its first byte has been copied.
    if ('isValue' in each) rest[to - 1] = ZERO;
  }
  rest.set(bytes.subarray(from), to);
  return rest;
}

const ZERO = 0x30;
