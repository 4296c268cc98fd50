import {
  BACKSLASH,
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COMMA,
  QUOTE,
} from './json-characters.ts';

/**
 * Finds a key that stands twice in one object: parsers differ on which of the two they take (RFC 8259 §4), so
 * what one checks need not be what another reads.
 * @param text valid JSON (it has been parsed)
 * @returns the first such key, with the names that lead to it (`metadata.tags[2].id`), or undefined
 */
export const duplicateKey = (text: string): string | undefined =>
  findKey(text, (_name, repeated) => repeated);

/**
 * The first key of a JSON text that is looked for, with the names that lead to it.
 * @param text valid JSON (it has been parsed)
 * @param wanted told each key's full name, and whether it stood in its object before
 */
export function findKey(
  text: string,
  wanted: (name: string, repeated: boolean) => boolean,
): string | undefined {
  const open: Container[] = [];
  for (let i = 0; i < text.length; i++) {
    const within = open.at(-1);
    switch (text.charCodeAt(i)) {
      case BRACE_OPEN:
        open.push({ name: memberOf(within), keys: new Set(), expectsKey: true, key: '', index: 0 });
        break;
      case BRACKET_OPEN:
        open.push({ name: memberOf(within), keys: undefined, expectsKey: false, key: '', index: 0 });
        break;
      case BRACE_CLOSE:
      case BRACKET_CLOSE:
        open.pop();
        break;
      case COMMA:
        if (within) nextMember(within);
        break;
      case QUOTE: {
        const end = endOfString(text, i);
        if (within?.expectsKey) {
          const repeated = repeats(within, text.slice(i, end + 1));
          if (wanted(memberOf(within), repeated)) return memberOf(within);
        }
        i = end;
      }
    }
  }
  return undefined;
}

/** An object or list that the scan is within. */
type Container = {
  readonly name: string;
  /** Keys seen; undefined for a list. */
  readonly keys: Set<string> | undefined;
  expectsKey: boolean;
  /** The member that the scan is at. */
  key: string;
  index: number;
};

function memberOf(within: Container | undefined): string {
  if (within === undefined) return '';
  const { name, keys, key, index } = within;
  if (keys === undefined) return `${name}[${index}]`;
  return name === '' ? key : `${name}.${key}`;
}

function nextMember(within: Container): void {
  within.expectsKey = within.keys !== undefined;
  within.index++;
}

function repeats(within: Container, literal: string): boolean {
  within.key = JSON.parse(literal) as string;
  within.expectsKey = false;
  const repeated = within.keys?.has(within.key) ?? false;
  within.keys?.add(within.key);
  return repeated;
}

/** Index of the quote that ends the string beginning at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}
