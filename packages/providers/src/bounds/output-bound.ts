import type { JsonObject } from '../json.ts';
import type { ModelFacts, Unbounded } from '../spend.ts';

/** Every name in use for the bound of the output: an API reads one or two, holders send any. */
const BOUND_NAMES: readonly string[] = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];

/** The bound of a call that omits one, unless the API itself has a lower one. */
const OMITTED = 4_096;
const OMITTED_REASONING = 32_768;
/** A bound is not lowered below this, because the call would be useless to its caller. */
const WORTHWHILE = 256;

/**
 * The output that a call asks for, and how far its bound may be lowered.
 * @param minimum lowest bound the API takes, or that leaves room for the thinking that was asked for
 * @param omitted what the API itself does without a bound, if less than usual
 */
export function readOutputBound(
  body: JsonObject,
  { maxOutput, contextWindow, reasoning }: ModelFacts,
  { minimum, omitted }: { readonly minimum: number; readonly omitted?: number },
): { readonly asked: number; readonly least: number } | { readonly unbounded: Unbounded } {
  const given = BOUND_NAMES.filter((name) => body[name] !== undefined && body[name] !== null);
  const bad = given.find((name) => !isCount(body[name]));
  if (bad !== undefined) return { unbounded: { param: bad, reason: 'is not a whole number above 0' } };
  const values = given.map((name) => body[name]);
  const other = given.find((name) => body[name] !== values[0]);
  if (other !== undefined) {
    return { unbounded: { param: other, reason: `differs from ${given[0]}, which means the same` } };
  }
  const wanted =
    typeof values[0] === 'number' ? values[0] : (omitted ?? (reasoning ? OMITTED_REASONING : OMITTED));
  const asked = Math.min(wanted, maxOutput ?? contextWindow ?? wanted);
  return { asked, least: Math.min(asked, Math.max(minimum, WORTHWHILE)) };
}

/** The body with the bound under one name, all others gone. */
export function writeOutputBound(body: JsonObject, name: string, tokens: number): JsonObject {
  const isWritten = BOUND_NAMES.every((field) => body[field] === (field === name ? tokens : undefined));
  if (isWritten) return body;
  const { max_tokens: _, max_completion_tokens: __, max_output_tokens: ___, ...others } = body;
  return { ...others, [name]: tokens };
}

/** A whole number above 0 that arithmetic keeps exact. */
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0;

/** How many of a thing are asked for, 1 if none are named; undefined if the field holds something else. */
export function countIn(body: JsonObject, field: string, most: number): number | undefined {
  const value = body[field] ?? 1;
  return isCount(value) && value <= most ? value : undefined;
}
