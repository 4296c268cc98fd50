import { type LeftOut, parseJson } from '@presign/schema';

/** A JSON object as parsed. */
export type JsonObject = { readonly [key: string]: unknown };

/** Whether a parsed value is a JSON object (not an array, not null). */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object that a JSON text contains. Undefined if it contains anything else. */
export function readObject(text: string): JsonObject | undefined {
  const value = parseJson(text);
  return isJsonObject(value) ? value : undefined;
}

/** The object in a field. Empty if the field contains anything else. */
export function objectIn(held: JsonObject, field: string): JsonObject {
  const value = held[field];
  return isJsonObject(value) ? value : EMPTY;
}

const EMPTY: JsonObject = Object.freeze({});

/** Whether a value is text, or a long text that was not read (`LeftOut`). */
export const isText = (value: unknown): value is string | LeftOut =>
  typeof value === 'string' || typeof value === 'bigint';

/** The value if it is text, else ''. `String(value)` is not safe: an object from outside may have a `toString` that throws. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The count in a field: 0 if it is absent, NaN if it is not a count. A sum that contains NaN is NaN. */
export const countOf = (reported: unknown, field: string): number => {
  const value = isJsonObject(reported) ? (reported[field] ?? 0) : 0;
  return isTokens(value) ? value : Number.NaN;
};

/** Whether a value is a whole number of at least 0 that arithmetic keeps exact. */
export const isTokens = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0;

/**
 * A pattern that finds in a JSON text a member of one of these names that is not null. It may mistake quoted text for a member. It does not
 * find a name that is written with escapes.
 * @param names of letters, digits and `_`
 */
export const valueOfAny = (names: readonly string[]): RegExp =>
  // Null is the only JSON value that begins with n. The last space or colon may not be left out to get past it.
  new RegExp(`"(?:${names.join('|')})"[ :]*(?![ :n])`);
