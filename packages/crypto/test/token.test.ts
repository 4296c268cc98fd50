import { describe, expect, test } from 'vitest';
import {
  generateSigningKey,
  MAX_TOKEN_CHARS,
  readPublicKeys,
  readSigningKey,
  signToken,
  verifyToken,
} from '../src/index.ts';

const key = readSigningKey(generateSigningKey());
const newer = readSigningKey(generateSigningKey());
const keys = readPublicKeys(key.publicKey);
const claims = {
  jti: 'g1',
  sub: 's1',
  iat: 1_700_000_000,
  exp: 1_700_003_600,
  aud: 'https://gateway.example',
};

describe('a signed token', () => {
  test('verifies with the public key alone, and returns its claims and key id', () => {
    expect(verifyToken(signToken(claims, key), keys)).toEqual({ ok: true, claims, kid: key.kid });
  });

  test('is v4.public, and its footer contains the key id alone', () => {
    const [version, purpose, , footer = ''] = signToken(claims, key).split('.');
    expect([version, purpose]).toEqual(['v4', 'public']);
    expect(Buffer.from(footer, 'base64url').toString()).toBe(`{"kid":"${key.kid}"}`);
  });

  test('has the same bytes each time the same claims are signed', () => {
    expect(signToken({ ...claims }, key)).toBe(signToken(claims, key));
  });

  test('has the same bytes whatever the order of the claims and of their fields', () => {
    const one = { a: 1, b: { c: [{ x: 1, y: 2 }], d: null } };
    const two = { b: { d: null, c: [{ y: 2, x: 1 }] }, a: 1 };
    expect(signToken(one, key)).toBe(signToken(two, key));
  });

  test('keeps the order of lists', () => {
    expect(signToken({ paths: ['/a', '/b'] }, key)).not.toBe(signToken({ paths: ['/b', '/a'] }, key));
  });

  test('carries any script unchanged, and a claim named __proto__ as an ordinary field', () => {
    const odd = { name: 'ключ 🔑 "\\\u0000\u2028', ['__proto__']: 'x', toString: 1 };
    const verified = verifyToken(signToken(odd, key), keys);
    expect(verified).toMatchObject({ ok: true });
    if (!verified.ok) return;
    expect(Object.entries(verified.claims as object).sort()).toEqual(Object.entries(odd).sort());
    expect(Object.getPrototypeOf(verified.claims)).toBe(Object.prototype);
  });

  test('is checked by its signature alone: an expired token still verifies here', () => {
    expect(verifyToken(signToken({ exp: 1 }, key), keys)).toMatchObject({ ok: true, claims: { exp: 1 } });
  });

  test('may be exactly as long as allowed; a longer one is never signed', () => {
    const fits = longestClaims();
    const token = signToken(fits, key);
    expect(token.length).toBeGreaterThan(MAX_TOKEN_CHARS - 4);
    expect(token.length).toBeLessThanOrEqual(MAX_TOKEN_CHARS);
    expect(verifyToken(token, keys)).toMatchObject({ ok: true });
    expect(() => signToken({ pad: `${fits.pad}xxx` }, key)).toThrow(RangeError);
  });
});

describe('rotation', () => {
  const both = readPublicKeys(`${key.publicKey},${newer.publicKey}`);

  test('while both keys are listed, tokens of both verify, and the result names the key', () => {
    expect(verifyToken(signToken(claims, key), both)).toMatchObject({ ok: true, kid: key.kid });
    expect(verifyToken(signToken(claims, newer), both)).toMatchObject({ ok: true, kid: newer.kid });
  });

  test('once a key is removed, its tokens are refused with "unknown key"', () => {
    const after = readPublicKeys(newer.publicKey);
    expect(verifyToken(signToken(claims, key), after)).toEqual({ ok: false, reason: 'unknown_key' });
  });
});

/** Claims whose token comes within three characters of the bound: base64url grows by 4 for 3 bytes. */
function longestClaims(): { pad: string } {
  const empty = signToken({ pad: '' }, key).length;
  return { pad: 'x'.repeat(Math.floor(((MAX_TOKEN_CHARS - empty) * 3) / 4)) };
}
