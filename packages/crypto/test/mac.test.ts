import { createHmac, hkdfSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkMac, generateEncryptionKey, mac, readEncryptionKeys } from '../src/index.ts';

const oldKey = generateEncryptionKey('k1');
const newKey = generateEncryptionKey('k2');
const keys = readEncryptionKeys(oldKey);
const body = '{"provider":"openai"}';
const made = mac(keys, 'idempotency', body);

describe('a fingerprint', () => {
  test('is the HMAC-SHA256 of the data under a key derived for the purpose, prefixed with the key id', () => {
    const derived = hkdfSync('sha256', Buffer.from(oldKey.slice(3), 'base64'), '', 'idempotency', 32);
    const expected = createHmac('sha256', Buffer.from(derived)).update(body).digest('base64url');
    expect(made).toBe(`k1.${expected}`);
  });

  test('of the same data is the same, as text or as bytes', () => {
    expect(checkMac(keys, 'idempotency', body, made)).toBe('same');
    expect(checkMac(keys, 'idempotency', Buffer.from(body), made)).toBe('same');
  });

  test('of any other data is different', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
        fc.pre(!Buffer.from(a).equals(b));
        expect(checkMac(keys, 'idempotency', b, mac(keys, 'idempotency', a))).toBe('different');
      }),
    );
  });

  test('made for another purpose is different', () => {
    expect(checkMac(keys, 'other', body, made)).toBe('different');
  });

  test('made with another key of the same id is different', () => {
    const others = readEncryptionKeys(generateEncryptionKey('k1'));
    expect(checkMac(others, 'idempotency', body, made)).toBe('different');
  });

  test.each(['', '.', 'k1', 'k1.', `${made}A`, `${made}=`, made.slice(0, -1), `${made}.`])(
    'that is malformed (%j) is different',
    (text) => {
      expect(checkMac(keys, 'idempotency', body, text)).toBe('different');
    },
  );

  test('is checked with the key that made it while that key is listed, and is unknown afterwards', () => {
    const rotated = readEncryptionKeys(`${newKey},${oldKey}`);
    expect(checkMac(rotated, 'idempotency', body, made)).toBe('same');
    expect(mac(rotated, 'idempotency', body)).toMatch(/^k2\./);
    expect(checkMac(readEncryptionKeys(newKey), 'idempotency', body, made)).toBe('unknown_key');
  });
});
