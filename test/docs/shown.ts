import { expect } from 'vitest';
import type { Fence } from './fences.ts';

/** JSON has the fields and types that the page shows; other output is the same text. */
export function expectAsShown(output: string, shown: Fence | undefined): void {
  if (!shown) return;
  if (shown.language === 'json') expectSameShape(JSON.parse(output), JSON.parse(shown.code), '');
  else expect(output.trim()).toBe(shown.code.trim());
}

/** Values that do not differ from run to run. */
const EXACT = /\.(code|cost_limit|limit|limit_of|max_uses|needed|remaining|spent|status|type|used|version)$/;

/** The same fields everywhere, with values of the same type. Codes and small amounts are the same, too. */
export function expectSameShape(actual: unknown, shown: unknown, path: string): void {
  if (Array.isArray(shown)) {
    expect(Array.isArray(actual), path).toBe(true);
    for (const item of actual as unknown[]) expectSameShape(item, shown[0], `${path}[]`);
  } else if (shown !== null && typeof shown === 'object') {
    expect(Object.keys(actual ?? {}), path).toEqual(Object.keys(shown));
    for (const [name, member] of Object.entries(shown))
      expectSameShape((actual as Record<string, unknown>)[name], member, `${path}.${name}`);
  } else if (EXACT.test(path)) expect(actual, path).toBe(shown);
  else expect(actual === null ? null : typeof actual, path).toBe(shown === null ? null : typeof shown);
}
