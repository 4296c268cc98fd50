import { isJsonObject } from '../json.ts';

/**
 * Names of counts in a usage object that are counted, or change no price. Names of inner objects are joined with a dot, and `x.*`
 * stands for everything in `x`.
 */
export type KnownCounts = ReadonlySet<string>;

/** More of them are not looked for. */
const MOST = 8;
/** Deeper than any usage nests. */
const DEEPEST = 8;

/** The names of the counts in a usage object that are not 0 and not known: they may cost money. */
export function unknownCounts(usage: unknown, known: KnownCounts): readonly string[] {
  const found: string[] = [];
  const walk = (value: unknown, name: string, depth: number): void => {
    if (found.length >= MOST || known.has(name)) return;
    if (Array.isArray(value)) {
      for (const each of value) walk(each, name, depth);
    } else if (isJsonObject(value) && depth < DEEPEST) {
      if (known.has(`${name}.*`)) return;
      for (const [field, each] of Object.entries(value))
        walk(each, name === '' ? field : `${name}.${field}`, depth + 1);
    } else if (isJsonObject(value) || isAmount(value)) found.push(name);
  };
  walk(usage, '', 0);
  return found;
}

/** Google writes large whole numbers as text (https://protobuf.dev/programming-guides/json/), and others write amounts of money so. */
const isAmount = (value: unknown): boolean =>
  typeof value === 'number'
    ? value !== 0
    : typeof value === 'string' && AMOUNT.test(value) && Number(value) !== 0;

const AMOUNT = /^-?\d{1,20}(\.\d{1,20})?(e-?\d{1,3})?$/i;

/** Whether a list of names has this one. */
export function isNamedIn(names: KnownCounts, name: string): boolean {
  if (names.size === 0) return false;
  if (names.has(name)) return true;
  for (let dot = name.indexOf('.'); dot > 0; dot = name.indexOf('.', dot + 1))
    if (names.has(`${name.slice(0, dot)}.*`)) return true;
  return false;
}
