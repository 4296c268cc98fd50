/**
 * Index of the quote that ends the string beginning at `start`, or of the end of the text. Most strings are so short that to look at their
 * bytes takes less time than one search.
 */
export function endOfStringBytes(json: Uint8Array, start: number): number {
  const near = Math.min(json.length, start + NEAR);
  let from = start + 1;
  while (from < near) {
    const byte = json[from];
    if (byte === QUOTE) return from;
    from += byte === BACKSLASH ? 2 : 1;
  }
  for (let end = json.indexOf(QUOTE, from); end >= 0; end = json.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return json.length;
}

const NEAR = 32;

/** Bytes by which the escape `\uXXXX` at a place is longer than what `JSON.stringify` writes for its character. */
export function sparedByEscape(json: Uint8Array, at: number): number {
  const unit = unitAt(json, at);
  if (unit < 0x20) return 0;
  if (unit < 0x80) return unit === QUOTE || unit === BACKSLASH ? 4 : 5;
  if (unit < 0x800) return 4;
  if (unit < 0xd800 || unit > 0xdfff) return 3;
  // Two escapes, 12 bytes, make one character of 4 bytes. A half that is alone stays escaped.
  if (unit > 0xdbff || json[at + 6] !== BACKSLASH || json[at + 7] !== SMALL_U) return 0;
  const low = unitAt(json, at + 6);
  return low >= 0xdc00 && low <= 0xdfff ? 8 : 0;
}

/** Whether an escape `\u` has four hexadecimal digits. */
export function isHexEscape(json: Uint8Array, at: number): boolean {
  for (let i = at + 2; i < at + 6; i++) if ((HEX[json[i] ?? 0] ?? 0xff) === 0xff) return false;
  return true;
}

/** The code unit of an escape; 0 if the digits are not hexadecimal. */
function unitAt(json: Uint8Array, at: number): number {
  let unit = 0;
  for (let i = at + 2; i < at + 6; i++) {
    const digit = HEX[json[i] ?? 0] ?? 0xff;
    if (digit === 0xff) return 0;
    unit = unit * 16 + digit;
  }
  return unit;
}

const HEX = Uint8Array.from({ length: 256 }, (_, byte) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase());
  return digit < 0 ? 0xff : digit;
});

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SMALL_U = 0x75;
