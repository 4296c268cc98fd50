import type { KeyObject } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  generateSigningKey,
  readPublicKeys,
  readSigningKey,
  signMessage,
  verifyMessage,
} from '../src/index.ts';

const key = readSigningKey(generateSigningKey());
const other = readSigningKey(generateSigningKey());
const keys = readPublicKeys(`${key.publicKey},${other.publicKey}`);
const publicKey = keys.get(key.kid) as KeyObject;
const bytes = Buffer.from([0, 255]);
const signed = signMessage(bytes, key.privateKey);

describe('a signed message', () => {
  test('returns any bytes, and an empty footer if it has none', () => {
    expect(verifyMessage(signed, publicKey)).toEqual({ message: bytes, footer: Buffer.alloc(0) });
  });

  test('is refused with an empty footer written with its dot', () => {
    expect(verifyMessage(`${signed}.`, publicKey)).toBeUndefined();
  });

  test('is refused with a key other than the signing key', () => {
    expect(verifyMessage(signed, keys.get(other.kid) as KeyObject)).toBeUndefined();
  });

  test('is refused with another implicit assertion, or without the one it was signed with', () => {
    const asserted = signMessage(bytes, key.privateKey, bytes, Buffer.from('tenant 1'));
    expect(verifyMessage(asserted, publicKey, Buffer.from('tenant 1'))).toEqual({
      message: bytes,
      footer: bytes,
    });
    expect(verifyMessage(asserted, publicKey, Buffer.from('tenant 2'))).toBeUndefined();
    expect(verifyMessage(asserted, publicKey)).toBeUndefined();
  });

  test('has one valid signature: the variant made by adding the group order to S is refused', () => {
    const body = Buffer.from(signed.split('.')[2] ?? '', 'base64url');
    const twin = Buffer.concat([body.subarray(0, -32), plusGroupOrder(body.subarray(-32))]);
    expect(verifyMessage(`v4.public.${twin.toString('base64url')}`, publicKey)).toBeUndefined();
  });
});

/** S + L, little-endian (RFC 8032 §5.1: L = 2^252 + 27742317777372353535851937790883648493). */
function plusGroupOrder(s: Buffer): Buffer {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const value = BigInt(`0x${Buffer.from(s).reverse().toString('hex')}`) + order;
  return Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse();
}
