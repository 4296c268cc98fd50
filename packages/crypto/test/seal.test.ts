import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  generateEncryptionKey,
  readEncryptionKeys,
  reseal,
  SealError,
  type SealErrorCode,
  seal,
  sealDeterministic,
  sealedWith,
  unseal,
} from '../src/index.ts';

const oldKey = generateEncryptionKey('k1');
const newKey = generateEncryptionKey('k2');
const keys = readEncryptionKeys(oldKey);
const place = 'credential:1:account:1';
const sealed = seal(keys, 'sk-provider-key', place);

describe('a deterministic seal', () => {
  const anyText = fc.string({ unit: 'binary', maxLength: 300 });

  test('is the same for the same text and place, and unseals only there', () => {
    fc.assert(
      fc.property(anyText, anyText, (text, associated) => {
        const once = sealDeterministic(keys, text, associated);
        expect(sealDeterministic(keys, text, associated)).toBe(once);
        expect(unseal(keys, once, associated)).toBe(text);
        expect(() => unseal(keys, once, `${associated}x`)).toThrow(SealError);
      }),
    );
  });

  test('has another nonce for every other text, place or key', () => {
    const nonceOf = (each: string) => each.slice(each.indexOf('.') + 1).slice(0, 16);
    const rotated = readEncryptionKeys(`${newKey},${oldKey}`);
    const all = [
      ...Array.from({ length: 1000 }, (_, i) => sealDeterministic(keys, `id-${i}`, place)),
      ...Array.from({ length: 1000 }, (_, i) => sealDeterministic(keys, 'id', `${place}:${i}`)),
      sealDeterministic(rotated, 'id-1', place),
      // The end of the place and the start of the text are the same bytes in both.
      sealDeterministic(keys, 'bc', 'a'),
      sealDeterministic(keys, 'c', 'ab'),
    ];
    expect(new Set(all.map(nonceOf)).size).toBe(all.length);
  });

  test('shows nothing of a text longer than its nonce', () => {
    const bytes = Buffer.from(sealDeterministic(keys, 'session-of-the-server', place).slice(3), 'base64url');
    expect(bytes.toString('latin1')).not.toContain('session');
    expect(sealedWith(sealDeterministic(keys, 'x', place))).toBe('k1');
  });
});

describe('a sealed record', () => {
  test('unseals any text, at the place for which it was sealed', () => {
    const anyText = fc.string({ unit: 'binary', maxLength: 300 });
    fc.assert(
      fc.property(anyText, anyText, (text, associated) => {
        expect(unseal(keys, seal(keys, text, associated), associated)).toBe(text);
      }),
    );
  });

  test('has the key id in front, and shows nothing of the text', () => {
    expect(sealed).toMatch(/^k1\.[\w-]+$/);
    expect(Buffer.from(sealed.slice(3), 'base64url').toString('latin1')).not.toContain('provider');
    expect(sealedWith(sealed)).toBe('k1');
  });

  test('differs each time, and never repeats a nonce', () => {
    const nonces = Array.from({ length: 1000 }, () => seal(keys, 'same', place).slice(3, 19));
    expect(new Set(nonces).size).toBe(1000);
  });

  test('does not unseal at another place', () => {
    expect(codeOf(sealed, 'credential:2:account:1')).toBe('not_authentic');
    expect(codeOf(sealed, '')).toBe('not_authentic');
  });

  test('does not unseal after a swap with a record at another place', () => {
    const other = seal(keys, 'another secret', 'credential:2:account:1');
    expect(codeOf(other, place)).toBe('not_authentic');
    expect(codeOf(sealed, 'credential:2:account:1')).toBe('not_authentic');
  });

  test('does not unseal with any single bit changed', () => {
    const bytes = Buffer.from(sealed.slice(3), 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const forged = Buffer.from(bytes);
      forged.writeUInt8(forged.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(codeOf(`k1.${forged.toString('base64url')}`)).toBe('not_authentic');
    }
  });

  test('does not unseal with any single bit of its text changed', () => {
    for (let at = 0; at < sealed.length; at += 1) {
      for (let bit = 0; bit < 16; bit += 1) {
        const changed = String.fromCharCode(sealed.charCodeAt(at) ^ (1 << bit));
        expect(codeOf(sealed.slice(0, at) + changed + sealed.slice(at + 1))).not.toBe('unsealed');
      }
    }
  });

  test('does not unseal if cut at any length, or with an extra byte', () => {
    for (let length = 0; length < sealed.length; length += 1) {
      expect(codeOf(sealed.slice(0, length))).not.toBe('unsealed');
    }
    expect(codeOf(`${sealed}AAAA`)).toBe('not_authentic');
  });

  test('does not unseal under another key id, even if both ids have the same key', () => {
    const twins = readEncryptionKeys(`${oldKey},${oldKey.replace('k1:', 'k9:')}`);
    expect(codeOf(sealed.replace('k1.', 'k9.'), place, twins)).toBe('not_authentic');
  });

  test('does not unseal with another key under the same id', () => {
    expect(codeOf(sealed, place, readEncryptionKeys(generateEncryptionKey('k1')))).toBe('not_authentic');
  });

  test.each([
    ['nothing', ''],
    ['no id', '.AAAA'],
    ['no dot', 'k1'],
    ['an id of forbidden characters', `k 1.${sealed.slice(3)}`],
    ['too few bytes for nonce and tag', `k1.${Buffer.alloc(27).toString('base64url')}`],
    ['padding', `${sealed}=`],
    ['a second dot', `${sealed}.`],
    ['plain text', 'sk-provider-key'],
  ])('that is %s is malformed', (_name, text) => {
    expect(codeOf(text)).toBe('malformed');
    expect(() => sealedWith(text)).toThrow(SealError);
  });

  test('is refused with an error that quotes nothing', () => {
    const text = 'sk-never-in-a-log';
    expect(() => unseal(keys, text, place)).not.toThrow(text);
    expect(() => unseal(keys, text, place)).toThrow('malformed');
  });
});

describe('rotation', () => {
  const rotated = readEncryptionKeys(`${newKey},${oldKey}`);

  test('the new key seals and the old one still unseals', () => {
    expect(sealedWith(seal(rotated, 'x', place))).toBe('k2');
    expect(unseal(rotated, sealed, place)).toBe('sk-provider-key');
  });

  test('a resealed record unseals after the old key is removed; one that was not resealed has an unknown key', () => {
    const resealed = reseal(rotated, sealed, place);
    const after = readEncryptionKeys(newKey);
    expect(sealedWith(resealed)).toBe('k2');
    expect(unseal(after, resealed, place)).toBe('sk-provider-key');
    expect(codeOf(sealed, place, after)).toBe('unknown_key');
  });

  test('a record that does not unseal is not resealed', () => {
    expect(() => reseal(rotated, sealed, 'elsewhere')).toThrow(SealError);
  });
});

function codeOf(text: string, associated = place, with_ = keys): SealErrorCode | 'unsealed' {
  try {
    unseal(with_, text, associated);
    return 'unsealed';
  } catch (error) {
    if (error instanceof SealError) return error.code;
    throw error;
  }
}
