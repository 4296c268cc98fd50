import { z } from 'zod';

export const NOT_KNOWN = 'this field is not known';

/** What is said of a field that an object does not take: with the name that it may have been meant for. */
export function unknownField(keys: readonly string[], object: unknown): string {
  const names = object instanceof z.ZodObject ? Object.keys(object.shape) : [];
  const meant = names.find((name) => isNear(name, keys[0] ?? ''));
  return meant === undefined ? NOT_KNOWN : `${NOT_KNOWN} (did you mean ${meant}?)`;
}

/** Whether two names differ in one place by at most two characters: `max_use`, `maxUses`, `tokn`, `scpoes`. */
function isNear(a: string, b: string): boolean {
  const [most, least] = [Math.max(a.length, b.length), Math.min(a.length, b.length)];
  let before = 0;
  while (before < least && a[before] === b[before]) before++;
  let behind = 0;
  while (behind < least - before && a.at(-1 - behind) === b.at(-1 - behind)) behind++;
  return before + behind >= 2 && most - before - behind <= 2;
}
