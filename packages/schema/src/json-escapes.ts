/** Index of the quote that ends the string beginning at `start`, or of the end of the text. */
export function endOfStringBytes(json: Uint8Array, start: number): number {
  for (let end = json.indexOf(QUOTE, start + 1); end >= 0; end = json.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (json[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return json.length;
}

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
