import { isJsonObject, type JsonObject } from '../dialect.ts';
import type { Usage } from '../spend.ts';

/** The text of a JSON object as one; undefined for anything else. */
export function parseObject(data: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A text as it stands, '' for what is none: an object from outside may bring a `toString` that throws. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A count as reported, 0 where it is absent; NaN for what is no count, which spoils every sum it is part of. */
export const countOf = (reported: unknown, field: string): number => {
  const value = isJsonObject(reported) ? (reported[field] ?? 0) : 0;
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : Number.NaN;
};

/** Usage without the counts of 0, but for input and output; undefined if one of them is no count. */
export function usageOf(counts: Usage): Usage | undefined {
  if (Object.values(counts).some(Number.isNaN)) return undefined;
  const always = ['input_tokens', 'output_tokens'];
  return Object.fromEntries(Object.entries(counts).filter(([unit, n]) => n > 0 || always.includes(unit)));
}
