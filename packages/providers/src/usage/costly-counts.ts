import { COSTLY_USAGE } from '../facts/content.ts';
import { isNamedIn } from './known-counts.ts';

const COSTLY = new Set(COSTLY_USAGE.names);

/** Whether this version knows that a count costs money, or one that its name covers (`x.*`, or `x` for a list). */
export const isCostlyCount = (name: string): boolean =>
  isNamedIn(COSTLY, name) ||
  COSTLY.has(`${name}.*`) ||
  (name.endsWith('.*') && COSTLY_USAGE.names.some((each) => each.startsWith(name.slice(0, -1))));
