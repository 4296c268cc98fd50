import { type KeyObject, sign } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  generateSigningKey,
  MAX_TOKEN_CHARS,
  readPublicKeys,
  readSigningKey,
  signMessage,
  signToken,
  verifyToken,
} from '../src/index.ts';

const key = readSigningKey(generateSigningKey());
const other = readSigningKey(generateSigningKey());
const keys = readPublicKeys(`${key.publicKey},${other.publicKey}`);
const footer = Buffer.from(`{"kid":"${key.kid}"}`);
const token = signToken({ jti: 'grant', exp: 1_700_003_600, paths: ['/v1/chat/completions'] }, key);
const [, , body = '', tail = ''] = token.split('.');

const malformed = { ok: false, reason: 'malformed' };
const badSignature = { ok: false, reason: 'bad_signature' };

test('the original token of these tests is valid', () => {
  expect(verifyToken(token, keys)).toMatchObject({ ok: true });
});

describe('a changed token', () => {
  test('is refused for any single changed bit', () => {
    for (let at = 0; at < token.length; at += 1) {
      for (let bit = 0; bit < 16; bit += 1) {
        const changed = String.fromCharCode(token.charCodeAt(at) ^ (1 << bit));
        const forged = token.slice(0, at) + changed + token.slice(at + 1);
        expect(verifyToken(forged, keys).ok, `bit ${bit} of character ${at}`).toBe(false);
      }
    }
  });

  test('is refused by its signature for any single changed bit of the signed bytes', () => {
    const bytes = Buffer.from(body, 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const forged = Buffer.from(bytes);
      forged.writeUInt8(forged.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      expect(verifyToken(`v4.public.${forged.toString('base64url')}.${tail}`, keys)).toEqual(badSignature);
    }
  });

  test('is refused if cut at any length, from either end', () => {
    for (let length = 0; length < token.length; length += 1) {
      expect(verifyToken(token.slice(0, length), keys).ok).toBe(false);
      expect(verifyToken(token.slice(token.length - length), keys).ok).toBe(false);
    }
  });

  test('is refused, whatever the edit', () => {
    const edit = fc.record({
      at: fc.nat(token.length),
      remove: fc.nat(8),
      insert: fc.string({ maxLength: 8 }),
    });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), (edits) => {
        const forged = edits.reduce(
          (text, { at, remove, insert }) => text.slice(0, at) + insert + text.slice(at + remove),
          token,
        );
        fc.pre(forged !== token);
        expect(verifyToken(forged, keys).ok).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  test('is refused with parts swapped with another valid token', () => {
    const [, , otherBody, otherTail] = signToken({ jti: 'other' }, other).split('.');
    expect(verifyToken(`v4.public.${body}.${otherTail}`, keys)).toEqual(badSignature);
    expect(verifyToken(`v4.public.${otherBody}.${tail}`, keys)).toEqual(badSignature);
  });
});

describe('any text', () => {
  test.each([
    ['characters of any kind', fc.string({ unit: 'binary', maxLength: 400 })],
    ['dots and letters', fc.string({ unit: fc.constantFrom(...'v4.publicAa_-'), maxLength: 60 })],
    ['random parts behind the right header', behindHeader()],
  ])('is refused without an exception: %s', (_name, texts) => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(verifyToken(text, keys).ok).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a token that is not exactly v4.public is malformed', () => {
  test.each([
    ['nothing', ''],
    ['the header alone', 'v4.public.'],
    ['v3.public', token.replace('v4', 'v3')],
    ['v2.public', token.replace('v4', 'v2')],
    ['v1.public', token.replace('v4', 'v1')],
    ['v4.local', token.replace('public', 'local')],
    ['another case', token.replace('v4', 'V4')],
    ['another suffix of the header', token.replace('public', 'publicx')],
    ['a JWT', 'eyJhbGciOiJub25lIn0.eyJqdGkiOiJncmFudCJ9.'],
    ['no footer', `v4.public.${body}`],
    ['an empty footer', `v4.public.${body}.`],
    ['no body', `v4.public..${tail}`],
    ['a body shorter than a signature', `v4.public.${Buffer.alloc(63).toString('base64url')}.${tail}`],
    ['a fifth part', `${token}.AAAA`],
    ['a trailing dot', `${token}.`],
    ['a trailing byte', `${token}A`],
    ['a trailing line end', `${token}\n`],
    ['a trailing NUL', `${token}\0`],
    ['a leading space', ` ${token}`],
    ['padding behind the body', `v4.public.${body}=.${tail}`],
    ['padding behind the footer', `${token}==`],
    ['percent encoding', token.replace('.', '%2E')],
  ])('%s', (_name, forged) => {
    expect(verifyToken(forged, keys)).toEqual(malformed);
  });

  test('the other base64 alphabet', () => {
    const withBoth = tokenWhose((text) => text.includes('-') && text.includes('_'));
    expect(verifyToken(withBoth, keys).ok).toBe(true);
    expect(verifyToken(withBoth.replace('-', '+'), keys)).toEqual(malformed);
    expect(verifyToken(withBoth.replace('_', '/'), keys)).toEqual(malformed);
  });

  test('unused trailing bits that are not zero', () => {
    const loose = tokenWhose((_text, bodyText) => bodyText.length % 4 === 2);
    const [, , text = '', end] = loose.split('.');
    const last = Buffer.from(`AAA${text.slice(-1)}`, 'base64url').readUInt8(2);
    const same = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.charAt(last + 1);
    const twin = `${text.slice(0, -1)}${same}`;
    expect(Buffer.from(twin, 'base64url')).toEqual(Buffer.from(text, 'base64url'));
    expect(verifyToken(`v4.public.${twin}.${end}`, keys)).toEqual(malformed);
  });
});

describe('the footer', () => {
  test.each([
    ['is not JSON', key.kid],
    ['has a space', `{"kid": "${key.kid}"}`],
    ['has a second field', `{"kid":"${key.kid}","wpk":""}`],
    ['has the key twice', `{"kid":"${key.kid}","kid":"${other.kid}"}`],
    ['spells kid with an escape', `{"\\u006bid":"${key.kid}"}`],
    ['names a public key instead of its id', `{"kid":"${key.publicKey}"}`],
    ['has an id that is short', `{"kid":"${key.kid.slice(0, -1)}"}`],
    ['has an id that is long', `{"kid":"${key.kid}A"}`],
    ['has an id in the other base64 alphabet', `{"kid":"${key.kid.slice(0, -1)}+"}`],
    ['names no string', '{"kid":null}'],
    ['ends in a line end', `{"kid":"${key.kid}"}\n`],
    ['is long', `{"kid":"${key.kid}"}${' '.repeat(200)}`],
  ])('has one valid form: a token is malformed if the footer %s, even if signed correctly', (_name, text) => {
    const forged = signMessage(Buffer.from('{}'), key.privateKey, Buffer.from(text));
    expect(verifyToken(forged, keys)).toEqual(malformed);
  });

  test('that names another known key than the signing key makes a bad signature', () => {
    const forged = signMessage(Buffer.from('{}'), key.privateKey, Buffer.from(`{"kid":"${other.kid}"}`));
    expect(verifyToken(forged, keys)).toEqual(badSignature);
  });

  test('that names an unknown key is refused as unknown, before any signature is checked', () => {
    const [, , unsigned] = token.replace(body, Buffer.alloc(80).toString('base64url')).split('.');
    const foreign = Buffer.from(`{"kid":"k4.pid.${'A'.repeat(44)}"}`).toString('base64url');
    expect(verifyToken(`v4.public.${unsigned}.${foreign}`, keys)).toEqual({
      ok: false,
      reason: 'unknown_key',
    });
  });
});

describe('a correctly signed payload', () => {
  test.each([
    ['an array', '[1]'],
    ['a string', '"claims"'],
    ['a number', '1'],
    ['null', 'null'],
    ['nothing', ''],
    ['cut JSON', '{"a":1'],
    ['two values', '{}{}'],
    ['JSON behind a byte order mark', '\uFEFF{}'],
    ['JSON with a trailing NUL', '{}\0'],
  ])('that is %s is malformed', (_name, text) => {
    expect(verifyToken(signMessage(Buffer.from(text), key.privateKey, footer), keys)).toEqual(malformed);
  });

  test.each([
    ['a byte that is never UTF-8', 'ff'],
    ['an overlong spelling', 'c0af'],
    ['a surrogate', 'eda080'],
    ['a cut sequence', 'e282'],
  ])('with %s in a string is malformed', (_name, hex) => {
    const bytes = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')]);
    expect(verifyToken(signMessage(bytes, key.privateKey, footer), keys)).toEqual(malformed);
  });

  test('signed with an implicit assertion is refused, because none is expected', () => {
    const forged = signMessage(Buffer.from('{}'), key.privateKey, footer, Buffer.from('tenant'));
    expect(verifyToken(forged, keys)).toEqual(badSignature);
  });

  test('signed without pre-authentication encoding is refused', () => {
    const message = Buffer.from('{}');
    const plain = sign(null, Buffer.concat([Buffer.from('v4.public.'), message, footer]), key.privateKey);
    const forged = Buffer.concat([message, plain]).toString('base64url');
    expect(verifyToken(`v4.public.${forged}.${tail}`, keys)).toEqual(badSignature);
  });
});

describe('length', () => {
  test('one character over the bound is refused for its length', () => {
    const long = `v4.public.${'A'.repeat(MAX_TOKEN_CHARS + 1 - 10)}`;
    expect(verifyToken(long, keys)).toEqual({ ok: false, reason: 'too_long' });
    expect(verifyToken(long.slice(1), keys)).toEqual(malformed);
  });

  test('a megabyte is refused before a key is looked up, even if signed correctly', () => {
    const claims = Buffer.from(JSON.stringify({ pad: 'x'.repeat(2 ** 20) }));
    const long = signMessage(claims, key.privateKey, footer);
    const untouched = new Untouchable();
    expect(verifyToken(long, untouched)).toEqual({ ok: false, reason: 'too_long' });
  });
});

class Untouchable extends Map<string, KeyObject> {
  override get(): never {
    return expect.unreachable('a key was looked up');
  }
}

function behindHeader(): fc.Arbitrary<string> {
  const part = fc.uint8Array({ maxLength: 120 }).map((bytes) => Buffer.from(bytes).toString('base64url'));
  return fc.tuple(part, fc.oneof(part, fc.constant(tail))).map(([a, b]) => `v4.public.${a}.${b}`);
}

function tokenWhose(fits: (token: string, body: string) => boolean): string {
  for (let n = 0; n < 1000; n += 1) {
    const candidate = signToken({ pad: 'x'.repeat(n % 3), n }, key);
    if (fits(candidate, candidate.split('.')[2] ?? '')) return candidate;
  }
  throw new Error('no token of that kind in a thousand');
}
