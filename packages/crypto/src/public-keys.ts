import { createPublicKey, type KeyObject } from 'node:crypto';
import { encodeBase64url } from './base64url.ts';
import { KeyError } from './key-error.ts';
import { paserkId, readPaserk } from './paserk.ts';

/** The keys whose tokens are accepted, by `kid`. Several while keys are being rotated. */
export type PublicKeys = ReadonlyMap<string, KeyObject>;

/**
 * Reads the accepted keys from a list of PASERK `k4.public`, separated by commas or white space.
 *
 * @throws {KeyError} if the list is empty or an entry is malformed or forgeable; it is named by its place
 */
export function readPublicKeys(list: string): PublicKeys {
  const entries = list.split(/[\s,]+/).filter((entry) => entry !== '');
  if (entries.length === 0) throw new KeyError('no public key: expected one or more k4.public keys');
  return new Map(entries.map((entry, index) => readEntry(entry, index + 1)));
}

function readEntry(entry: string, place: number): [kid: string, key: KeyObject] {
  try {
    return [paserkId(entry), publicKeyOf(readPaserk('k4.public', entry))];
  } catch (error) {
    throw error instanceof KeyError ? new KeyError(`public key ${place}: ${error.message}`) : error;
  }
}

function publicKeyOf(bytes: Buffer): KeyObject {
  if (isSmallOrder(bytes)) throw new KeyError('a point of small order, under which anyone can sign');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: encodeBase64url(bytes) }, format: 'jwk' });
}

/**
 * The y of Ed25519's points of order 1, 2, 4 and 8, little-endian, and the two that have a second spelling
 * (p and p + 1). All zeros, as in a placeholder that was never filled in, is one of them. Under such a key one
 * signature, made without any secret, fits at least every eighth message.
 */
const SMALL_ORDER_Y = new Set([
  `01${'00'.repeat(31)}`,
  `ec${'ff'.repeat(30)}7f`,
  '00'.repeat(32),
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
]);

/** RFC 8032 §5.1.2: the highest bit is the sign of x, the rest is y. */
function isSmallOrder(bytes: Buffer): boolean {
  const y = Buffer.from(bytes);
  y.writeUInt8(y.readUInt8(31) & 0x7f, 31);
  return SMALL_ORDER_Y.has(y.toString('hex'));
}
