/** Dotted names of the fields that are read from a body, as in `generationConfig.maxOutputTokens`. */
export type NamesRead = ReadonlySet<string>;

/**
 * Finds a key that readers may differ on, so that what is checked here might not be what the provider reads:
 * one that stands twice in one object (RFC 8259 §4), or one that equals a name we read but for case (Go's
 * encoding/json, for one, takes them for the same).
 * @param text valid JSON (it has been parsed)
 * @returns the first such key, or undefined
 */
export function ambiguousKey(text: string, read: NamesRead): string | undefined {
  const folded = fold(read);
  const open: Container[] = [];
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const within = open.at(-1);
    if (code === BRACE_OPEN || code === BRACKET_OPEN) {
      open.push(enter(code, within));
    } else if (code === BRACE_CLOSE || code === BRACKET_CLOSE) {
      open.pop();
    } else if (code === COMMA) {
      if (within) within.expectsKey = within.keys !== undefined;
    } else if (code === QUOTE) {
      const end = endOfString(text, i);
      if (within?.expectsKey && within.keys) {
        const key = JSON.parse(text.slice(i, end + 1)) as string;
        if (within.keys.has(key) || differsInCase(key, within, folded)) return key;
        within.keys.add(key);
        within.expectsKey = false;
      }
      i = end;
    }
  }
  return undefined;
}

/** An object or list that the scan is within. */
type Container = {
  /** Keys seen; undefined for a list. */
  readonly keys: Set<string> | undefined;
  /** The names that lead here, each with a dot after it; undefined where nothing is read. */
  readonly path: string | undefined;
  expectsKey: boolean;
  /** The names that lead to the value of the last key; undefined where nothing is read. */
  field: string | undefined;
};

function enter(code: number, within: Container | undefined): Container {
  if (code === BRACKET_OPEN) return { keys: undefined, path: undefined, expectsKey: false, field: undefined };
  const path = within === undefined ? '' : within.field === undefined ? undefined : `${within.field}.`;
  return { keys: new Set(), path, expectsKey: true, field: undefined };
}

function differsInCase(key: string, within: Container, folded: ReadonlyMap<string, string>): boolean {
  if (within.path === undefined) return false;
  const field = within.path + key;
  within.field = folded.get(field.toLowerCase());
  return within.field !== undefined && within.field !== field;
}

/** The fields, and those that lead to them, by their names without case. */
function fold(read: NamesRead): ReadonlyMap<string, string> {
  const folded = new Map<string, string>();
  for (const field of read) {
    for (let end = field.length; end > 0; end = field.lastIndexOf('.', end - 1)) {
      const leading = field.slice(0, end);
      folded.set(leading.toLowerCase(), leading);
    }
  }
  return folded;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

/** Index of the quote that ends the string beginning at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}
