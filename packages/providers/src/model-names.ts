import * as FACTS from './facts/model-names.ts';

/** No model has a longer name. */
export const NAME_MAX_CHARS = 255;

/**
 * Whether a text has only suffixes from an index on. Each index is visited once. A single expression for all suffixes
 * would try every way to split `-1234-12-12-1234-12-12…`.
 */
export function endsInSuffixes(text: string, start: number): boolean {
  const reached = new Set([start]);
  for (const at of reached) {
    for (const suffix of FACTS.SUFFIXES.parts) {
      suffix.lastIndex = at;
      if (suffix.test(text)) reached.add(suffix.lastIndex);
    }
  }
  return reached.has(text.length);
}

/**
 * Whether two names mean one model: in another case, with and without the name of its maker, a region, a date or a version, with a dot or a
 * dash in its number, or with its words in another order (`claude-sonnet-4.5`, `anthropic/claude-4.5-sonnet-20250929`,
 * `us.anthropic.claude-sonnet-4-5-20250929-v1:0`).
 */
export function isSameModel(a: string, b: string): boolean {
  if (a === b) return true;
  if (a.length > NAME_MAX_CHARS || b.length > NAME_MAX_CHARS) return false;
  const [one, other] = [withoutMaker(a), withoutMaker(b)];
  return extendsName(one, other) || extendsName(other, one) || wordsOf(one) === wordsOf(other);
}

/** Whether a name is another one with a date, a stage or a version behind it. */
const extendsName = (longer: string, name: string): boolean =>
  longer.startsWith(name) && endsInSuffixes(longer, name.length);

/** `us.anthropic.claude-…-v1:0`, `openai/gpt-4o`: the name that its maker gives it, in lower case. */
function withoutMaker(name: string): string {
  const whole = name.toLowerCase().slice(name.lastIndexOf('/') + 1);
  return whole.replace(FACTS.REGION_AND_MAKER.matching, '').replace(FACTS.ENDPOINT_VERSION.matching, '');
}

/** `gpt-4o` of `gpt-4o-2024-11-20`. */
export const undated = (model: string): string => model.replace(FACTS.DATE.matching, '');

/** The words of a name without its version, in order of the alphabet, and its numbers. */
function wordsOf(name: string): string {
  const parts = name.slice(0, versionAt(name)).split(/[-._:@]/);
  const words = parts.filter((part) => /^[a-z]/.test(part)).toSorted();
  return [...words, ...parts.filter((part) => /^\d/.test(part))].join('-');
}

/** Whether a name says more than the model: a date, a stage or a version. */
export const hasVersion = (name: string): boolean => versionAt(name) !== undefined;

/** Where the suffixes of a name begin. */
const versionAt = (name: string): number | undefined =>
  [...name.matchAll(/[-@:]/g)].find(({ index }) => endsInSuffixes(name, index))?.index;
