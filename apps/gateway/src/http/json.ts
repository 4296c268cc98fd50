import { findKey } from '@presign/schema';

/** Dotted names of the fields that are read from a body, for example `generationConfig.maxOutputTokens`. */
export type NamesRead = ReadonlySet<string>;

/**
 * Finds a key that two JSON readers may understand differently, so that the gateway would check another value than
 * the provider reads. Such a key is repeated in one object (RFC 8259 §4), or differs only in case from a name in
 * `read`: Go's encoding/json, for one, ignores case.
 * @param text valid JSON
 * @returns the first such key with the names that lead to it, or undefined
 */
export function ambiguousKey(text: string, read: NamesRead): string | undefined {
  const { folded, longest } = foldedOf(read);
  return findKey(text, (name, repeated) => {
    // Folding case never makes a name shorter. Long names are not folded: writing out each of them takes time
    // that grows with the square of the body's length.
    if (repeated || name.length > longest) return repeated;
    const known = folded.get(foldCase(name));
    return known !== undefined && known !== name;
  });
}

type Folded = { readonly folded: ReadonlyMap<string, string>; readonly longest: number };

const FOLDED = new WeakMap<NamesRead, Folded>();

/** Folds the names of a set once. Sets that are made once are found again; a call with a `config` or `models` has a set of its own. */
function foldedOf(read: NamesRead): Folded {
  const known = FOLDED.get(read);
  if (known) return known;
  const folded = foldNames(read);
  const made = { folded, longest: Math.max(0, ...Array.from(folded.keys(), ({ length }) => length)) };
  FOLDED.set(read, made);
  return made;
}

/** The fields and the objects that hold them, by their names without case. */
function foldNames(read: NamesRead): ReadonlyMap<string, string> {
  const folded = new Map<string, string>();
  for (const field of read) {
    for (let end = field.length; end > 0; end = field.lastIndexOf('.', end - 1)) {
      const leading = field.slice(0, end);
      folded.set(foldCase(leading), leading);
    }
  }
  return folded;
}

/**
 * Folds case as the most lenient readers do: Go's encoding/json takes `ſ` for `s` and the Kelvin sign for `k`, and
 * Java's equalsIgnoreCase also takes `ı` and `İ` for `i`.
 */
const foldCase = (name: string) => name.replaceAll('İ', 'I').toUpperCase().toLowerCase();

/**
 * Names that a gateway checks or prices, and every other spelling that a lenient server may read as one of them: another
 * case, spaces or invisible characters, another Unicode normal form.
 */
export class KnownNames {
  readonly #names: ReadonlySet<string>;
  readonly #byForm: ReadonlyMap<string, string>;
  readonly #longestForm: number;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    this.#byForm = new Map(Array.from(this.#names, (name) => [formOf(name.replace(UNSEEN, '')), name]));
    this.#longestForm = Math.max(0, ...Array.from(this.#byForm.keys(), (form) => form.length));
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** The known name that this one is a spelling of. Undefined when it is a known name itself, or like none. */
  alike(name: string): string | undefined {
    if (this.has(name)) return undefined;
    const seen = name.replace(UNSEEN, '');
    // Normalization takes time that grows with the square of a text's length. A form has at least one character for each
    // character of the name, which has at most two UTF-16 units, so longer names have another form.
    return seen.length > 2 * this.#longestForm ? undefined : this.#byForm.get(formOf(seen));
  }
}

const UNSEEN = /[\p{White_Space}\p{Cc}\p{Default_Ignorable_Code_Point}]/gu;

/** Java's equalsIgnoreCase reads `ı` and `İ` as `i`. The decomposed `İ` ends in a combining dot. */
const formOf = (name: string) =>
  name
    .normalize('NFKD')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replaceAll('i\u0307', 'i')
    .replace(UNSEEN, '');
