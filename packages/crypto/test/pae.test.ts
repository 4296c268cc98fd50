// Its modules import each other in a circle that resolves only when entered here.
import 'paseto-ts/v4';
import fc from 'fast-check';
import { PAE } from 'paseto-ts/lib/pae';
import { describe, expect, test } from 'vitest';
import { pae } from '../src/token.ts';

describe('pre-authentication encoding', () => {
  test('encodes no pieces as eight zero bytes', () => {
    expect(pae([]).toString('hex')).toBe('0000000000000000');
  });

  test('encodes one piece after the count and the length', () => {
    expect(pae([Buffer.from('test')]).toString('hex')).toBe('0100000000000000040000000000000074657374');
  });

  test('agrees with paseto-ts on any pieces', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 600 }), { maxLength: 6 }), (pieces) => {
        expect(pae(pieces)).toEqual(Buffer.from(PAE(...pieces)));
      }),
    );
  });

  test('bytes moved over a boundary change the encoding', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), fc.nat(), fc.nat(), (bytes, a, b) => {
        const [first, second] = [a % (bytes.length + 1), b % (bytes.length + 1)];
        fc.pre(first !== second);
        const cut = (at: number) => pae([bytes.subarray(0, at), bytes.subarray(at)]);
        expect(cut(first)).not.toEqual(cut(second));
      }),
    );
  });
});
