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

/** The bounds of a JSON text. */
export type Modesty = { readonly depth: number; readonly parts: number };

/**
 * Whether a JSON text nests at most so deep, has at most so many strings, members and elements, and no very long
 * names. Counts bytes before the text is parsed: 64 MiB of `{},` would stop the process for half a minute, too,
 * and take gigabytes.
 */
export const isModest = (json: Uint8Array, most: Modesty): boolean => findExcess(json, most) === undefined;

/**
 * Finds where a JSON text exceeds its bounds.
 * @returns undefined when it does not; else the name of the member at the top level, if it is within one
 */
export function findExcess(
  json: Uint8Array,
  most: Modesty,
): { readonly member: string | undefined } | undefined {
  let depth = 0;
  let parts = 0;
  let member: Uint8Array | undefined;
  for (let i = 0; i < json.length; i++) {
    let isLong = false;
    switch (json[i]) {
      case QUOTE: {
        const end = endOfString(json, i);
        isLong = end - i - 1 > NAME_MAX && isBeforeColon(json, end);
        if (depth === 1 && !isLong && isBeforeColon(json, end)) member = json.subarray(i + 1, end);
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
    if (isLong || depth > most.depth || parts > most.parts)
      return { member: member && new TextDecoder().decode(member) };
  }
  return undefined;
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
