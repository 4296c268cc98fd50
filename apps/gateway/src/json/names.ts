import { isJsonObject, type JsonObject, type NameJudge } from '@presign/schema';

/**
 * Names that are read from a body, nested as the objects that have them. A body is searched along this tree, so the time depends only on
 * the body.
 */
export class NameTree {
  /** The child names by folded name. Names that differ only in case share them. */
  readonly #byFold = new Map<string, NameTree>();
  /** The child names by exact name. Most names of a body match exactly and need no folding. */
  readonly #exact = new Map<string, NameTree>();
  #longest = 0;
  #size = 0;

  /** A tree of paths, such as `['generationConfig', 'maxOutputTokens']`, and of all names of some objects. */
  constructor(paths: Iterable<readonly string[]> = [], objects: Iterable<JsonObject> = []) {
    for (const path of paths) this.#addPath(path);
    for (const object of objects) this.#addFields(object);
  }

  /** How many names it has. */
  get size(): number {
    return this.#size;
  }

  /** Whether a name differs from one of these only in case, and is not one of them. */
  isOtherCase(name: string): boolean {
    // Folding case never makes a name shorter. Long names are not folded, because folding takes longer than the search.
    if (name.length > this.#longest || this.#exact.has(name)) return false;
    return this.#byFold.has(foldCase(name));
  }

  /** The names within a field. */
  below(name: string): NameTree | undefined {
    const exact = this.#exact.get(name);
    if (exact || name.length > this.#longest) return exact;
    return this.#byFold.get(foldCase(name));
  }

  #addPath([name, ...deeper]: readonly string[]): number {
    if (name === undefined) return 0;
    const { below, added } = this.#add(name);
    return this.#grow(added + below.#addPath(deeper));
  }

  #addFields(object: JsonObject): number {
    let grown = 0;
    for (const [name, value] of Object.entries(object)) {
      const { below, added } = this.#add(name);
      grown += added + (isJsonObject(value) ? below.#addFields(value) : 0);
    }
    return this.#grow(grown);
  }

  #grow(added: number): number {
    this.#size += added;
    return added;
  }

  #add(name: string): { readonly below: NameTree; readonly added: number } {
    const fold = foldCase(name);
    const below = this.#byFold.get(fold) ?? new NameTree();
    const added = this.#exact.has(name) ? 0 : 1;
    this.#byFold.set(fold, below);
    this.#exact.set(name, below);
    this.#longest = Math.max(this.#longest, fold.length);
    return { below, added };
  }
}

/**
 * Checks for keys that two JSON parsers may read differently, so that the gateway checks another value than the provider reads. Such a key
 * differs only in case from a name that is read there. For example, Go's encoding/json ignores case.
 * @param read the names of the object, or of each object in a list. Undefined: no names are read.
 */
export const namesJudge = (read: NameTree | undefined): NameJudge<NameTree> => ({
  root: read?.size === 0 ? undefined : read,
  below: (tree, name) => (name === undefined ? elementOf(tree, read) : tree.below(name)),
  isUnwanted: (tree, name) => tree.isOtherCase(name),
});

/** Only the elements of a list at the top have names: the messages of a batch. */
const elementOf = (tree: NameTree, root: NameTree | undefined) => (tree === root ? root : undefined);

/**
 * Folds case as the most lenient readers do: Go's encoding/json takes `ſ` for `s` and the Kelvin sign for `k`, and
 * Java's equalsIgnoreCase also takes `ı` and `İ` for `i`.
 */
const foldCase = (name: string) => name.replaceAll('İ', 'I').toUpperCase().toLowerCase();

/**
 * Names that a gateway checks or prices, and the other spellings that a lenient server may accept for them. These
 * differ in case, spaces, invisible characters or the Unicode normal form.
 */
export class KnownNames {
  readonly #names: ReadonlySet<string>;
  readonly #byForm: ReadonlyMap<string, string>;
  readonly #longestForm: number;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    const forms = Array.from(this.#names, (name): [string, string] => [
      formOf(name.replace(UNSEEN, ''), FORM_MOST) ?? '',
      name,
    ]);
    this.#byForm = new Map(forms.filter(([form]) => form !== ''));
    this.#longestForm = Math.max(0, ...Array.from(this.#byForm.keys(), (form) => form.length));
  }

  /** The approximate memory of the names. */
  get bytes(): number {
    return this.#names.size * (NAME_BYTES + 2 * this.#longestForm);
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** The known name of which this is another spelling. Undefined: it is a known name itself, or resembles none. */
  alike(name: string): string | undefined {
    if (this.has(name)) return undefined;
    const form = formOf(name.replace(UNSEEN, ''), this.#longestForm);
    return form && this.#byForm.get(form);
  }
}

const NAME_BYTES = 200;
/** Characters of the longest form of a name. The issuer refuses names with a longer form. */
const FORM_MOST = 512;

const UNSEEN = /[\p{White_Space}\p{Cc}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * The form in which all spellings of a name are equal. Java's equalsIgnoreCase reads `ı` and `İ` as `i`. The decomposed `İ` ends in a
 * combining dot.
 * @returns undefined if the form is certainly longer than `most`, or the issuer refuses the name
 */
function formOf(name: string, most: number): string | undefined {
  if (isLongDecomposed(name, 2 * most) || MANY_MARKS.test(name)) return undefined;
  return name
    .normalize('NFKD')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replaceAll('i\u0307', 'i')
    .replace(UNSEEN, '');
}

/**
 * More combining marks in a row than the Stream-Safe Text Format allows (Unicode Standard Annex #15 §13). Sorting them takes quadratic
 * time. The halfwidth voiced sound marks decompose to such marks.
 */
const MANY_MARKS = /[\p{M}\uff9e\uff9f]{31}/u;

/**
 * Whether a name decomposes to more than `most` characters. It decomposes in pieces and stops at `most`, because one
 * character may become eighteen. The folded form is at least half as long, because only `i` with its dot gets shorter.
 */
function isLongDecomposed(name: string, most: number): boolean {
  if (name.length > 2 * most) return true;
  let length = 0;
  for (let at = 0; at < name.length && length <= most; at += PIECE)
    length += name
      .slice(at, at + PIECE)
      .normalize('NFKD')
      .replace(UNSEEN, '').length;
  return length > most;
}

/** A surrogate pair that is split between pieces counts as two characters, and is at least one. */
const PIECE = 32;
