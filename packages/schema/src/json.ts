/**
 * Reads strict UTF-8 and JSON.
 * @param mark what to do with a byte order mark: RFC 8259 §8.1 allows a reader to ignore it, but not every reader does
 * @returns the text and its value, or undefined when the bytes are not JSON
 */
export function readJson(
  bytes: Uint8Array,
  mark: 'refuse' | 'ignore' = 'refuse',
): { readonly text: string; readonly value: unknown } | undefined {
  try {
    const text = DECODERS[mark].decode(bytes);
    return { text, value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** The value of a JSON text. Undefined if it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Made once, because making one takes longer than to decode a small body. */
const DECODERS = {
  refuse: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }),
  ignore: new TextDecoder('utf-8', { fatal: true }),
} as const;

/** A JSON object as parsed. */
export type JsonObject = { readonly [key: string]: unknown };

/** Whether a parsed value is a JSON object (not an array, not null). */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Bytes of a member's name. V8 hashes strings beyond 16,383 characters by their length alone, so that thousands of long
 * names of one length are each compared with all others: 60 MB of them would stop the process for half a minute.
 */
const NAME_MAX = 16_000;

/** The bounds of a JSON text. */
export type Modesty = {
  readonly depth: number;
  readonly parts: number;
  /** The most members of one object. A copy of an object with 100,000 members takes as long as parsing it. */
  readonly members?: number;
};

/**
 * Counts the parts of a JSON text: its strings, members, elements and containers. It counts bytes before the text is
 * parsed: 64 MiB of `{},` would stop the process for half a minute, and take gigabytes.
 * @returns undefined if the text nests deeper or has more parts than `most`, or has a very long name
 */
export function countParts(json: Uint8Array, most: Modesty): number | undefined {
  const measured = measure(json, most);
  return 'parts' in measured ? measured.parts : undefined;
}

/** Whether a JSON text stays within these bounds and has no very long name. */
export const isModest = (json: Uint8Array, most: Modesty): boolean => countParts(json, most) !== undefined;

/** Where a text exceeds its bounds: the name of the member at the top level, if it is within one. */
type Excess = { readonly member: string | undefined };

/** Finds where a JSON text exceeds its bounds. Undefined when it does not. */
export function findExcess(json: Uint8Array, most: Modesty): Excess | undefined {
  const measured = measure(json, most);
  return 'parts' in measured ? undefined : measured;
}

function measure(json: Uint8Array, most: Modesty): { readonly parts: number } | Excess {
  const { members = Number.POSITIVE_INFINITY } = most;
  /** The commas in each open container; a list never has too many. */
  const commas: number[] = [];
  let depth = 0;
  let parts = 0;
  let member: Uint8Array | undefined;
  for (let i = 0; i < json.length; i++) {
    let isLong = false;
    let isWide = false;
    switch (json[i]) {
      case QUOTE: {
        const end = endOfStringBytes(json, i);
        isLong = end - i - 1 > NAME_MAX && isBeforeColon(json, end);
        if (depth === 1 && !isLong && isBeforeColon(json, end)) member = json.subarray(i + 1, end);
        i = end;
        parts++;
        break;
      }
      case COMMA: {
        parts++;
        const count = (commas[depth] ?? 0) + 1;
        commas[depth] = count;
        isWide = count >= members;
        break;
      }
      case BRACE_OPEN:
      case BRACKET_OPEN:
        parts++;
        depth++;
        commas[depth] = json[i] === BRACE_OPEN ? 0 : Number.NEGATIVE_INFINITY;
        break;
      case BRACE_CLOSE:
      case BRACKET_CLOSE:
        depth = Math.max(0, depth - 1);
    }
    if (isLong || isWide || depth > most.depth || parts > most.parts)
      return { member: member && new TextDecoder().decode(member) };
  }
  return { parts };
}

/** Index of the quote that ends the string beginning at `start`. */
function endOfStringBytes(json: Uint8Array, start: number): number {
  for (let end = json.indexOf(QUOTE, start + 1); end >= 0; end = json.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return json.length;
}

/** Whether the string that ended here is a name: only whitespace (RFC 8259 §2) is between it and a colon. */
function isBeforeColon(json: Uint8Array, end: number): boolean {
  let at = end + 1;
  while (WHITESPACE.has(json[at] ?? 0)) at++;
  return json[at] === COLON;
}

const WHITESPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Finds a key that occurs twice in one object. Parsers differ on which of the two they take (RFC 8259 §4), so one could
 * check a value that another does not read.
 * @param text valid JSON (it has been parsed)
 * @returns the first such key, with the names that lead to it (`metadata.tags[2].id`), or undefined
 */
export const duplicateKey = (text: string): string | undefined =>
  findKey(text, { root: undefined, below: () => undefined, isWanted: (_at, _key, repeated) => repeated });

/** A search in a JSON text. Each object and list has a place, by which its keys are judged. */
type Wanted<P> = {
  /** The place of the whole text. */
  readonly root: P;
  /** The place of what a key holds. Without a key, that of an element of a list. */
  readonly below: (place: P, key: string | undefined) => P;
  /** Receives each key, and whether its object had that key before. */
  readonly isWanted: (place: P, key: string, repeated: boolean) => boolean;
};

/**
 * The first wanted key of a JSON text, with the names that lead to it.
 * @param text valid JSON (it has been parsed)
 */
export function findKey<P>(text: string, { root, below, isWanted }: Wanted<P>): string | undefined {
  const open: Container<P>[] = [];
  const containerIn = (within: Container<P> | undefined, keys: Set<string> | undefined): Container<P> => ({
    name: memberOf(within),
    place: within ? below(within.place, within.keys && within.key) : root,
    keys,
    expectsKey: keys !== undefined,
    key: '',
    index: 0,
  });
  for (let i = 0; i < text.length; i++) {
    const within = open.at(-1);
    switch (text.charCodeAt(i)) {
      case BRACE_OPEN:
        open.push(containerIn(within, new Set()));
        break;
      case BRACKET_OPEN:
        open.push(containerIn(within, undefined));
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
          if (isWanted(within.place, within.key, repeated)) return memberOf(within);
        }
        i = end;
      }
    }
  }
  return undefined;
}

/** An object or list that the scan is within. */
type Container<P> = {
  readonly name: string;
  readonly place: P;
  /** Keys seen; undefined for a list. */
  readonly keys: Set<string> | undefined;
  expectsKey: boolean;
  /** The member that the scan is at. */
  key: string;
  index: number;
};

function memberOf(within: Container<unknown> | undefined): string {
  if (within === undefined) return '';
  const { name, keys, key, index } = within;
  if (keys === undefined) return `${name}[${index}]`;
  return name === '' ? key : `${name}.${key}`;
}

function nextMember(within: Container<unknown>): void {
  within.expectsKey = within.keys !== undefined;
  within.index++;
}

function repeats(within: Container<unknown>, literal: string): boolean {
  within.key = literal.includes('\\') ? (JSON.parse(literal) as string) : literal.slice(1, -1);
  within.expectsKey = false;
  const repeated = within.keys?.has(within.key) ?? false;
  within.keys?.add(within.key);
  return repeated;
}

/** Index of the quote that ends the string beginning at `start`. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

/** The structural characters of JSON (RFC 8259 §2): code points, and bytes in UTF-8. */
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
