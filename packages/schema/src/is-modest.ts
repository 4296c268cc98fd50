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
 * Whether a JSON text nests at most so deep and has at most so many strings, members and elements. Told from its
 * bytes, before it is parsed: 64 MiB of `{},` would stop the process for half a minute and take gigabytes.
 */
export function isModest(
  json: Uint8Array,
  most: { readonly depth: number; readonly parts: number },
): boolean {
  let depth = 0;
  let parts = 0;
  for (let i = 0; i < json.length; i++) {
    switch (json[i]) {
      case QUOTE:
        i = endOfString(json, i);
        parts++;
        break;
      case COMMA:
        parts++;
        break;
      case BRACE_OPEN:
      case BRACKET_OPEN:
        parts++;
        depth++;
        break;
      case BRACE_CLOSE:
      case BRACKET_CLOSE:
        depth--;
    }
    if (depth > most.depth || parts > most.parts) return false;
  }
  return true;
}

/** Index of the quote that ends the string beginning at `start`. */
function endOfString(json: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at;
}
