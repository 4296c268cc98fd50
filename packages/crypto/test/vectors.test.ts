import { createPublicKey } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  KeyError,
  paserkId,
  readPublicKeys,
  readSigningKey,
  signMessage,
  verifyMessage,
} from '../src/index.ts';
import { readPaserk, writePaserk } from '../src/token-keys.ts';
import { hex, readVectors, text, type Vector, vectorsPresent } from './vectors.ts';

const passing = (file: string) => readVectors(file).filter((vector) => !vector['expect-fail']);
const failing = (file: string) => readVectors(file).filter((vector) => vector['expect-fail']);
const named = (vectors: Vector[]) => vectors.map((vector) => [vector.name, vector] as const);

const paseto = readVectors('paseto-v4.json');
const isPublic = (vector: Vector) => 'public-key' in vector;

describe.skipIf(!vectorsPresent)('official PASETO v4.public vectors', () => {
  const signed = paseto.filter((vector) => isPublic(vector) && !vector['expect-fail']);

  test('the three signing cases and the failing one are there', () => {
    expect(signed.map((vector) => vector.name)).toEqual(['4-S-1', '4-S-2', '4-S-3']);
    expect(failing('paseto-v4.json').filter(isPublic)).toHaveLength(1);
  });

  test.each(named(signed))('%s: signing gives the token, byte for byte', (_name, vector) => {
    const key = readSigningKey(writePaserk('k4.secret', hex(vector, 'secret-key')));
    expect(key.publicKey).toBe(writePaserk('k4.public', hex(vector, 'public-key')));
    const parts = ['payload', 'footer', 'implicit-assertion'].map((field) =>
      Buffer.from(text(vector, field)),
    );
    const [payload, footer, assertion] = parts as [Buffer, Buffer, Buffer];
    expect(signMessage(payload, key.privateKey, footer, assertion)).toBe(text(vector, 'token'));
  });

  test.each(named(signed))('%s: the token verifies and returns payload and footer', (_name, vector) => {
    const assertion = Buffer.from(text(vector, 'implicit-assertion'));
    const verified = verifyMessage(text(vector, 'token'), publicKeyOf(vector), assertion);
    expect(verified?.message.toString()).toBe(text(vector, 'payload'));
    expect(verified?.footer.toString()).toBe(text(vector, 'footer'));
  });

  test.each(named(signed))('%s: another implicit assertion is refused', (_name, vector) => {
    const assertion = Buffer.from(`${text(vector, 'implicit-assertion')} `);
    expect(verifyMessage(text(vector, 'token'), publicKeyOf(vector), assertion)).toBeUndefined();
  });

  test.each(named(failing('paseto-v4.json').filter(isPublic)))('%s: is refused', (_name, vector) => {
    const assertion = Buffer.from(text(vector, 'implicit-assertion'));
    expect(verifyMessage(text(vector, 'token'), publicKeyOf(vector), assertion)).toBeUndefined();
  });

  test.each(named(paseto.filter((vector) => !isPublic(vector))))(
    '%s (v4.local): is refused',
    (_name, vector) => {
      const publicKey = publicKeyOf(signed[0] as Vector);
      expect(verifyMessage(text(vector, 'token'), publicKey)).toBeUndefined();
    },
  );
});

describe.skipIf(!vectorsPresent)('official PASERK k4 vectors', () => {
  for (const type of ['k4.public', 'k4.secret'] as const) {
    test.each(named(passing(`${type}.json`)))('%s: written and read back', (_name, vector) => {
      expect(writePaserk(type, hex(vector, 'key'))).toBe(text(vector, 'paserk'));
      expect(readPaserk(type, text(vector, 'paserk'))).toEqual(hex(vector, 'key'));
    });

    test.each(named(failing(`${type}.json`)))('%s: is refused', (_name, vector) => {
      expect(() => writePaserk(type, hex(vector, 'key'))).toThrow(KeyError);
    });
  }

  test.each(named(passing('k4.secret.json')))('%s: the seed gives the public key', (_name, vector) => {
    const key = readSigningKey(text(vector, 'paserk'));
    expect(readPaserk('k4.public', key.publicKey)).toEqual(hex(vector, 'public-key'));
  });

  test.each(named(passing('k4.pid.json')))('%s: the id', (_name, vector) => {
    expect(paserkId(writePaserk('k4.public', hex(vector, 'key')))).toBe(text(vector, 'paserk'));
  });

  test.each(named(failing('k4.pid.json')))('%s: is refused', (_name, vector) => {
    expect(() => paserkId(`k4.public.${hex(vector, 'key').toString('base64url')}`)).toThrow(KeyError);
  });

  test('ids of accepted keys are the official ones', () => {
    const vector = passing('k4.pid.json').find(({ name }) => name === 'k4.pid-2') as Vector;
    const keys = readPublicKeys(writePaserk('k4.public', hex(vector, 'key')));
    expect([...keys.keys()]).toEqual([text(vector, 'paserk')]);
  });
});

function publicKeyOf(vector: Vector) {
  return createPublicKey(text(vector, 'public-key-pem'));
}
