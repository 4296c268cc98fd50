import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { apiKeyHint, generateApiKey, hashApiKey, looksLikeApiKey, sameSecret } from '../src/index.ts';

const key = generateApiKey();
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

describe('an API key', () => {
  test('has the prefix, then 49 letters and digits, whatever its random bits', () => {
    const made = Array.from({ length: 500 }, generateApiKey);
    for (const one of made) {
      expect(one).toMatch(/^presign_sk_[0-9A-Za-z]{49}$/);
      expect(looksLikeApiKey(one)).toBe(true);
    }
    expect(new Set(made).size).toBe(500);
  });

  test('uses every letter and digit', () => {
    const seen = new Set(Array.from({ length: 500 }, () => generateApiKey().slice(12)).join(''));
    expect(seen.size).toBe(62);
  });

  test('is stored as its SHA-256 in hex', () => {
    expect(hashApiKey(key)).toBe(createHash('sha256').update(key, 'utf8').digest('hex'));
    expect(hashApiKey(key)).toMatch(/^[0-9a-f]{64}$/);
  });

  test('is shown by its prefix and last four characters', () => {
    expect(apiKeyHint(key)).toBe(`presign_sk_…${key.slice(-4)}`);
  });

  test('in another format shows no part of itself', () => {
    expect(apiKeyHint('hunter2')).toBe('…');
    expect(apiKeyHint(`${key} `)).toBe('…');
  });
});

describe('a mistyped API key is recognised', () => {
  test('with one changed character', () => {
    for (let at = 0; at < key.length; at += 1) {
      for (const letter of letters) {
        if (letter === key.charAt(at)) continue;
        expect(looksLikeApiKey(key.slice(0, at) + letter + key.slice(at + 1))).toBe(false);
      }
    }
  });

  test('with two neighbouring characters swapped', () => {
    for (let at = 0; at + 1 < key.length; at += 1) {
      const [a, b] = [key.charAt(at), key.charAt(at + 1)];
      if (a === b) continue;
      expect(looksLikeApiKey(key.slice(0, at) + b + a + key.slice(at + 2))).toBe(false);
    }
  });

  test.each([
    ['nothing', ''],
    ['the prefix alone', 'presign_sk_'],
    ['one character less', key.slice(0, -1)],
    ['one character more', `${key}A`],
    ['a line end', `${key}\n`],
    ['another prefix', key.replace('sk', 'pk')],
    ['all zeros', `presign_sk_${'0'.repeat(49)}`],
  ])('%s', (_name, text) => {
    expect(looksLikeApiKey(text)).toBe(false);
  });
});

test('sameSecret compares texts of any length', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(sameSecret(a, a)).toBe(true);
      expect(sameSecret(a, b)).toBe(a === b);
    }),
  );
});
