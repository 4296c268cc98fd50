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
