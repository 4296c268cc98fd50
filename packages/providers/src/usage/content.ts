import * as FACTS from '../facts/content.ts';

const NO_CONTENT: ReadonlySet<string> = new Set(FACTS.NO_CONTENT.names);

/** Deeper than any answer nests what a model wrote. */
const DEEPEST = 12;

/** Whether a value holds any text, such as what a model wrote, or the name of a tool that it calls. A refusal does not count. */
export function hasText(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return value !== '';
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return false;
  if (Array.isArray(value)) return value.some((each) => hasText(each, depth + 1));
  const held = value as { readonly [name: string]: unknown };
  for (const name in held) if (!NO_CONTENT.has(name) && hasText(held[name], depth + 1)) return true;
  return false;
}

/** Whether a value holds a list that is not empty, such as vectors or ranks. */
export const hasItems = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.length > 0
    : typeof value === 'object' && value !== null && Object.values(value).some(hasItems);
