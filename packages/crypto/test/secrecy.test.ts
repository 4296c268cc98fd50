import { format, inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  generateEncryptionKey,
  generateSigningKey,
  readEncryptionKeys,
  readPublicKeys,
  readSigningKey,
} from '../src/index.ts';

const signingText = generateSigningKey();
const encryptionText = generateEncryptionKey();
const signing = readSigningKey(signingText);
const encryption = readEncryptionKeys(encryptionText);

/** Each secret in the spellings in which it could be printed. */
const secrets = [
  Buffer.from(signingText.slice('k4.secret.'.length), 'base64url').subarray(0, 32),
  Buffer.from(encryptionText.slice('k1:'.length), 'base64'),
].flatMap((bytes) => [
  bytes.toString('base64').slice(0, 40),
  bytes.toString('base64url').slice(0, 40),
  bytes.toString('hex'),
  [...bytes.subarray(0, 8)].join(','),
  [...bytes.subarray(0, 8)].join(', '),
  bytes
    .toString('hex')
    .replace(/(..)(?=.)/g, '$1 ')
    .slice(0, 30),
]);

const everything = { signing, encryption, list: [signing, encryption] };
const deep = { depth: 20, showHidden: true, getters: true, showProxy: true } as const;

describe('a secret key is not shown', () => {
  test.each([
    ['util.inspect', inspect(everything)],
    ['util.inspect of all it can reach', inspect(everything, deep)],
    ['util.format', format('%s %o %O %j', signing, encryption, everything, everything)],
    ['JSON', JSON.stringify(everything)],
    ['JSON of a copy', JSON.stringify({ ...signing, ...encryption })],
    ['a template', `${signing} ${encryption}`],
    ['its own properties', JSON.stringify(Object.getOwnPropertyDescriptors(signing))],
  ])('by %s', (_name, shown) => {
    for (const secret of secrets) expect(shown).not.toContain(secret);
  });

  test('while the public fields that distinguish keys are', () => {
    expect(JSON.parse(JSON.stringify(signing))).toEqual({ kid: signing.kid, publicKey: signing.publicKey });
    expect(inspect(encryption)).toBe("EncryptionKeys { ids: [ 'k1' ] }");
    expect(inspect(readPublicKeys(signing.publicKey))).toContain(signing.kid);
  });

  test('and a shown secret would be found by these tests', () => {
    const leak = inspect({ seed: Buffer.from(signingText.slice(10), 'base64url') });
    expect(secrets.some((secret) => leak.includes(secret))).toBe(true);
  });
});
