import { generateKeys, verify } from 'paseto-ts/v4';
import { describe, expect, test } from 'vitest';
import { generateSigningKey, KeyError, paserkId, readPublicKeys, readSigningKey } from '../src/index.ts';

const secret = generateSigningKey();
const other = generateSigningKey();
const key = readSigningKey(secret);

describe('a signing key', () => {
  test('is new each time it is generated, and is read back with its public half and id', () => {
    expect(secret).not.toBe(other);
    expect(secret.endsWith(lastBytes(key.publicKey))).toBe(true);
    expect(key.publicKey).toMatch(/^k4\.public\.[\w-]{43}$/);
    expect(key.kid).toBe(paserkId(key.publicKey));
    expect(key.kid).toMatch(/^k4\.pid\.[\w-]{44}$/);
  });

  test('made by paseto-ts is read', () => {
    const { secretKey, publicKey } = generateKeys('public');
    expect(readSigningKey(secretKey).publicKey).toBe(publicKey);
  });

  test('whose halves belong to two key pairs is refused', () => {
    const halves = Buffer.concat([bytesOf(secret).subarray(0, 32), bytesOf(other).subarray(32)]);
    expect(() => readSigningKey(`k4.secret.${halves.toString('base64url')}`)).toThrow(/does not belong/);
  });

  test.each([
    ['nothing', ''],
    ['the public key', key.publicKey],
    ['another version', secret.replace('k4.', 'k3.')],
    ['another type', secret.replace('secret', 'local')],
    ['the seed alone', `k4.secret.${bytesOf(secret).subarray(0, 32).toString('base64url')}`],
    ['padding', `${secret}==`],
    ['a trailing line end', `${secret}\n`],
    ['a leading space', ` ${secret}`],
    [
      'a byte too many',
      `k4.secret.${Buffer.concat([bytesOf(secret), Buffer.alloc(1)]).toString('base64url')}`,
    ],
  ])('refuses %s, without quoting it', (_name, text) => {
    const message = messageOf(() => readSigningKey(text));
    expect(message).not.toContain(secret.slice(10, 20));
    expect(message).not.toContain(secret.slice(-12, -2));
  });
});

describe('the list of public keys', () => {
  const otherKey = readSigningKey(other);

  test.each([
    ['a comma', ','],
    ['a comma and a space', ', '],
    ['a line end', '\n'],
  ])('is separated by %s', (_name, separator) => {
    const keys = readPublicKeys([key.publicKey, otherKey.publicKey].join(separator));
    expect([...keys.keys()]).toEqual([key.kid, otherKey.kid]);
  });

  test('with the same key twice keeps it once', () => {
    expect(readPublicKeys(`${key.publicKey},${key.publicKey}`).size).toBe(1);
  });

  test.each(['', ' ', ',,'])('that is empty (%j) is refused', (list) => {
    expect(() => readPublicKeys(list)).toThrow(KeyError);
  });

  test('names a malformed entry by its position and never quotes it', () => {
    const message = messageOf(() => readPublicKeys(`${key.publicKey}, ${secret}`));
    expect(message).toMatch(/^public key 2: /);
    expect(message).not.toContain(secret.slice(10, 20));
  });
});

describe('a public key of small order', () => {
  const spellings = [
    `01${'00'.repeat(31)}`,
    `ec${'ff'.repeat(30)}7f`,
    '00'.repeat(32),
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  ];

  test.each(spellings)(
    '%s: it is refused, because a token made without any secret verifies under it',
    (hex) => {
      const publicKey = `k4.public.${Buffer.from(hex, 'hex').toString('base64url')}`;
      // R = the neutral element, S = 0: fits whenever the challenge is a multiple of the point's order.
      const signature = Buffer.alloc(64);
      signature.writeUInt8(1, 0);
      const forged = Array.from({ length: 200 }, (_, n) =>
        Buffer.concat([Buffer.from(`{"n":${n}}`), signature]),
      );
      expect(forged.some((body) => verifies(publicKey, body))).toBe(true);
      expect(() => readPublicKeys(publicKey)).toThrow(/small order/);
    },
  );

  test.each([
    ['the sign bit set', `${'00'.repeat(31)}80`],
    ['y written as p', `ed${'ff'.repeat(30)}7f`],
    ['y written as p + 1', `ee${'ff'.repeat(30)}7f`],
  ])('is refused in its non-canonical spelling: %s', (_name, hex) => {
    const paserk = `k4.public.${Buffer.from(hex, 'hex').toString('base64url')}`;
    expect(() => readPublicKeys(paserk)).toThrow(/small order/);
  });
});

/** As judged by paseto-ts: newer releases of OpenSSL refuse such keys themselves, older ones do not. */
function verifies(publicKey: string, body: Buffer): boolean {
  try {
    verify(publicKey, `v4.public.${body.toString('base64url')}`, { validatePayload: false });
    return true;
  } catch {
    return false;
  }
}

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(KeyError);
    return (error as KeyError).message;
  }
  throw new Error('nothing was refused');
}

function bytesOf(paserk: string): Buffer {
  return Buffer.from(paserk.split('.')[2] ?? '', 'base64url');
}

/** The last 30 bytes of a key, which in `k4.secret` and `k4.public` differ in their alignment only. */
function lastBytes(publicKey: string): string {
  return Buffer.concat([Buffer.alloc(1), bytesOf(publicKey).subarray(2)])
    .toString('base64url')
    .slice(-40);
}
