import { endOfString } from '@presign/schema';

/** A value within a JSON text, with its name if it is the member of an object. */
export type Part = { readonly name: string | undefined; readonly start: number; readonly end: number };

/** The members of this name of the object that begins at `start`. None if no object begins there. */
export const membersOf = (text: string, start: number, name: string): readonly Part[] =>
  text[start] === '{' ? partsOf(text, start).filter((part) => part.name === name) : [];

/** The members of the object, or the elements of the list, that begins at `start` in a valid JSON text. */
export function partsOf(text: string, start: number): readonly Part[] {
  const parts: Part[] = [];
  let at = afterSpace(text, start + 1);
  while (text[at] !== '}' && text[at] !== ']') {
    let name: string | undefined;
    if (text[start] === '{') {
      const nameEnd = endOfString(text, at) + 1;
      name = JSON.parse(text.slice(at, nameEnd)) as string;
      at = afterSpace(text, afterSpace(text, nameEnd) + 1);
    }
    const end = endOfValue(text, at);
    parts.push({ name, start: at, end });
    at = afterSpace(text, end);
    if (text[at] === ',') at = afterSpace(text, at + 1);
  }
  return parts;
}

function endOfValue(text: string, start: number): number {
  let depth = 0;
  let at = start;
  do {
    const mark = text[at];
    if (mark === '"') at = endOfString(text, at);
    else if (mark === '{' || mark === '[') depth++;
    else if (mark === '}' || mark === ']') depth--;
    else if (depth === 0) return indexOf(text, AFTER_SCALAR, at);
    at = depth === 0 ? at + 1 : indexOf(text, MARK, at + 1);
  } while (depth > 0);
  return at;
}

const AFTER_SCALAR = /[\s,\]}]/g;
const MARK = /["{}[\]]/g;
const NOT_SPACE = /[^ \t\r\n]/g;

export const afterSpace = (text: string, from: number): number => indexOf(text, NOT_SPACE, from);

/** Where the pattern is found next, or else the end of the text. */
function indexOf(text: string, pattern: RegExp, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? text.length;
}
