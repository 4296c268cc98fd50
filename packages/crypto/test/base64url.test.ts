import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeBase64url, encodeBase64url } from '../src/base64url.ts';

describe('base64url', () => {
  test('every byte string survives encoding and decoding', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(decodeBase64url(encodeBase64url(bytes))).toEqual(Buffer.from(bytes));
      }),
    );
  });

  test('a view into a larger buffer is encoded without the rest of the buffer', () => {
    expect(encodeBase64url(new Uint8Array([1, 2, 3, 4]).subarray(1, 3))).toBe('AgM');
  });

  test.each([
    ['padding', 'AQ=='],
    ['unused bits that are not zero', 'AR'],
    ['a lone last character', 'AAAAA'],
    ['+', '-_+A'],
    ['/', '-_/A'],
    ['white space', 'AA AA'],
    ['a line end', 'AAAA\n'],
    ['a dot', 'AAAA.'],
    ['NUL', 'AAAA\0'],
    ['letters that only look like ASCII', 'ＡＡＡＡ'],
    ['characters whose low byte is in the alphabet', String.fromCharCode(0x141, 0x141, 0x141, 0x141)],
  ])('%s is refused', (_name, text) => {
    expect(decodeBase64url(text)).toBeUndefined();
  });

  test('no two texts decode to the same bytes', () => {
    const alphabet = fc.constantFrom(...'ABQRgw_-+/=8');
    fc.assert(
      fc.property(fc.string({ unit: alphabet, maxLength: 6 }), (text) => {
        const bytes = decodeBase64url(text);
        fc.pre(bytes !== undefined);
        expect(encodeBase64url(bytes as Buffer)).toBe(text);
      }),
    );
  });
});
