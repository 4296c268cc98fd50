import fc from 'fast-check';
import { sign, verify } from 'paseto-ts/v4';
import { describe, expect, test } from 'vitest';
import { generateSigningKey, readPublicKeys, readSigningKey, signToken, verifyToken } from '../src/index.ts';

const secret = generateSigningKey();
const key = readSigningKey(secret);
const keys = readPublicKeys(key.publicKey);

/** paseto-ts wants dates in claims as ISO texts and adds its own; here it is asked for the bare protocol. */
const bare = { addIat: false, addExp: false, validatePayload: false };
/** It also counts nesting by a pattern that quotes in texts confuse, so keys and texts here have none. */
const word = fc.string({ unit: fc.constantFrom(...'abcXYZ019 /*_-éß漢🔑'), maxLength: 12 });
const value = fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null), fc.array(word, { maxLength: 3 }));
const claimSets = fc.dictionary(
  word.map((name) => `c${name}`),
  value,
  { maxKeys: 6, noNullPrototype: true },
);

describe('paseto-ts, an independent implementation', () => {
  test('verifies every token that we sign, with the same claims and key id', () => {
    fc.assert(
      fc.property(claimSets, (claims) => {
        const verified = verify(key.publicKey, signToken(claims, key), bare);
        expect(verified).toEqual({ payload: claims, footer: { kid: key.kid } });
      }),
      { numRuns: 25 },
    );
  });

  test('signs tokens that we verify', () => {
    fc.assert(
      fc.property(claimSets, (claims) => {
        const token = sign(secret, claims, { ...bare, footer: { kid: key.kid } });
        expect(verifyToken(token, keys)).toEqual({ ok: true, claims, kid: key.kid });
      }),
      { numRuns: 25 },
    );
  });

  test('signs the same bytes if the claims are sorted', () => {
    const claims = { aud: 'https://gateway.example', exp: 1_700_003_600, jti: 'g', paths: ['/v1/*'] };
    const theirs = sign(secret, JSON.stringify(claims), { ...bare, footer: { kid: key.kid } });
    expect(theirs).toBe(signToken(claims, key));
  });

  test('signs without a footer, or for another key, and both tokens are refused', () => {
    const foreign = readSigningKey(generateSigningKey());
    expect(verifyToken(sign(secret, { a: 1 }, bare), keys)).toMatchObject({ reason: 'malformed' });
    const unknown = sign(secret, { a: 1 }, { ...bare, footer: { kid: foreign.kid } });
    expect(verifyToken(unknown, keys)).toMatchObject({ reason: 'unknown_key' });
  });
});
