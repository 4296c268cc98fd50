import { findKey } from '@presign/schema';

/** Dotted names of the fields that are read from a body, as in `generationConfig.maxOutputTokens`. */
export type NamesRead = ReadonlySet<string>;

/**
 * Finds a key that readers may differ on, so that what is checked here might not be what the provider reads:
 * one that stands twice in one object (RFC 8259 §4), or one that equals a name we read but for case (Go's
 * encoding/json, for one, takes them for the same).
 * @param text valid JSON (it has been parsed)
 * @returns the first such key, with the names that lead to it, or undefined
 */
export function ambiguousKey(text: string, read: NamesRead): string | undefined {
  const folded = fold(read);
  const longest = Math.max(0, ...[...folded.keys()].map((name) => name.length));
  return findKey(text, (name, repeated) => {
    // Without case a name is never shorter. Long names stay untouched: to write each out would take the body's
    // length squared.
    if (repeated || name.length > longest) return repeated;
    const known = folded.get(caseless(name));
    return known !== undefined && known !== name;
  });
}

/** The fields, and those that lead to them, by their names without case. */
function fold(read: NamesRead): ReadonlyMap<string, string> {
  const folded = new Map<string, string>();
  for (const field of read) {
    for (let end = field.length; end > 0; end = field.lastIndexOf('.', end - 1)) {
      const leading = field.slice(0, end);
      folded.set(caseless(leading), leading);
    }
  }
  return folded;
}

/**
 * As the most generous reader sees it: Go's encoding/json takes `ſ` for `s` and the Kelvin sign for `k`, Java's
 * equalsIgnoreCase also `ı` and `İ` for `i`.
 */
const caseless = (name: string) => name.replaceAll('İ', 'I').toUpperCase().toLowerCase();
