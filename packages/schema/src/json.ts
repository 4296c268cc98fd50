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

/** Index of the quote that ends the string beginning at `start`. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

const BACKSLASH = 0x5c;
