import {
  BACKSLASH,
  BRACE_CLOSE,
  BRACE_OPEN,
  BRACKET_CLOSE,
  BRACKET_OPEN,
  COLON,
  COMMA,
  QUOTE,
} from './json-characters.ts';

/**
 * Bytes of a member's name. V8 hashes strings beyond 16,383 characters by their length alone, so that thousands of long
 * names of one length are each compared with all others: 60 MB of them would stop the process for half a minute.
 */
const NAME_MAX = 16_000;

/**
 * Whether a JSON text nests at most so deep, has at most so many strings, members and elements, and no very long
 * names. Told from its bytes, before it is parsed: 64 MiB of `{},` would stop the process for half a minute, too, and
 * take gigabytes.
 */
export function isModest(
  json: Uint8Array,
  most: { readonly depth: number; readonly parts: number },
): boolean {
  let depth = 0;
  let parts = 0;
  for (let i = 0; i < json.length; i++) {
    switch (json[i]) {
      case QUOTE: {
        const end = endOfString(json, i);
        if (end - i - 1 > NAME_MAX && isBeforeColon(json, end)) return false;
        i = end;
        parts++;
        break;
      }
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

/** Whether what ended here is a name: only whitespace (RFC 8259 §2) stands between it and its colon. */
function isBeforeColon(json: Uint8Array, end: number): boolean {
  let at = end + 1;
  while (WHITESPACE.has(json[at] ?? 0)) at++;
  return json[at] === COLON;
}

const WHITESPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);
