import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { generateEncryptionKey, KeyError, readEncryptionKeys } from '../src/index.ts';

const base64 = randomBytes(32).toString('base64');

describe('the list of encryption keys', () => {
  test('is read in order, and the first key seals', () => {
    const keys = readEncryptionKeys(`${generateEncryptionKey('new')}, ${generateEncryptionKey('old')}`);
    expect(keys.ids).toEqual(['new', 'old']);
    expect(keys.sealing.id).toBe('new');
    expect(keys.get('old')?.symmetricKeySize).toBe(32);
    expect(keys.get('other')).toBeUndefined();
  });

  test('accepts a generated key, whose id is k1 unless another is given', () => {
    expect(generateEncryptionKey()).toMatch(/^k1:[A-Za-z0-9+/]{43}=$/);
    expect(generateEncryptionKey()).not.toBe(generateEncryptionKey());
    expect(() => generateEncryptionKey('no.dots')).toThrow(KeyError);
  });

  test.each([
    ['nothing', ''],
    ['a key without an id', base64],
    ['an empty id', `:${base64}`],
    ['an id with a dot', `a.b:${base64}`],
    ['an id of 33 characters', `${'a'.repeat(33)}:${base64}`],
    ['16 bytes', `k1:${randomBytes(16).toString('base64')}`],
    ['33 bytes', `k1:${randomBytes(33).toString('base64')}`],
    ['no padding', `k1:${base64.slice(0, -1)}`],
    ['a space inside', `k1:${base64.slice(0, 5)} ${base64.slice(5)}`],
    ['hex', `k1:${randomBytes(32).toString('hex')}`],
    ['a second entry that is empty', `k1:${base64},`],
    ['an id twice', `k1:${base64},k1:${randomBytes(32).toString('base64')}`],
  ])('refuses %s, without quoting it', (_name, text) => {
    expect(() => readEncryptionKeys(text)).toThrow(KeyError);
    expect(() => readEncryptionKeys(text)).toThrow(/encryption key \d/);
    expect(() => readEncryptionKeys(text)).not.toThrow(base64.slice(0, 5));
  });
});
