/** A JSON object as parsed. */
export type JsonObject = { readonly [key: string]: unknown };

/** Whether a parsed value is a JSON object (not an array, not null). */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a parsed JSON value nests no deeper than `limit`; walks without recursion. */
export function nestsAtMost(limit: number, root: unknown): boolean {
  let level: readonly unknown[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return false;
    level = level.flatMap(children);
  }
  return true;
}

/** Whether all numbers are such as JSON can say again: `1e999` is read as Infinity and would be written as null. */
export function allFinite(root: unknown): boolean {
  if (typeof root === 'number') return Number.isFinite(root);
  return children(root).every(allFinite);
}

const children = (value: unknown): readonly unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value) : [];
