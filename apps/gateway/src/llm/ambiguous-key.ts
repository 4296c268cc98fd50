/** Names that are read from a body: of its top level, and of the objects directly below it. */
export type NamesRead = ReadonlySet<string>;

/**
 * Finds a key that readers may differ on, so that what is checked here might not be what the provider reads:
 * one that stands twice in one object (RFC 8259 §4), or one that equals a name we read but for case (Go's
 * encoding/json, for one, takes them for the same).
 * @param text valid JSON (it has been parsed)
 * @param read `name` for the top level, `parent.name` for the level below
 * @returns the first such key, or undefined
 */
export function ambiguousKey(text: string, read: NamesRead): string | undefined {
  const folded = new Map([...read].map((name) => [name.toLowerCase(), name]));
  /** Keys seen in each open object; undefined for an open array. */
  const open: (Set<string> | undefined)[] = [];
  let expectsKey = false;
  let parent = '';
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === BRACE_OPEN || code === BRACKET_OPEN) {
      expectsKey = code === BRACE_OPEN;
      open.push(expectsKey ? new Set() : undefined);
    } else if (code === BRACE_CLOSE || code === BRACKET_CLOSE) {
      open.pop();
    } else if (code === COMMA) {
      expectsKey = open.at(-1) !== undefined;
    } else if (code === QUOTE) {
      const end = endOfString(text, i);
      const seen = open.at(-1);
      if (expectsKey && seen) {
        const key = JSON.parse(text.slice(i, end + 1)) as string;
        if (seen.has(key) || differsInCase(folded, open.length, parent, key)) return key;
        seen.add(key);
        if (open.length === 1) parent = key;
        expectsKey = false;
      }
      i = end;
    }
  }
  return undefined;
}

function differsInCase(
  folded: ReadonlyMap<string, string>,
  depth: number,
  parent: string,
  key: string,
): boolean {
  if (depth > 2) return false;
  const name = depth === 1 ? key : `${parent}.${key}`;
  const known = folded.get(name.toLowerCase());
  return known !== undefined && known !== name;
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
