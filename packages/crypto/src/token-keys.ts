import { createPrivateKey, createPublicKey, type KeyObject, randomBytes } from 'node:crypto';
import { hash } from '@stablelib/blake2b';
import { decodeBase64url, encodeBase64url } from './base64url.ts';
import { KeyError } from './encryption-keys.ts';

/** An Ed25519 key that signs tokens. When printed or turned into JSON, it shows only its public half. */
export class SigningKey {
  /** PASERK id of the public key, the `kid` of every token signed with it. */
  readonly kid: string;
  /** The public key as PASERK `k4.public`, safe to publish. */
  readonly publicKey: string;
  readonly #privateKey: KeyObject;

  constructor(publicKey: string, privateKey: KeyObject) {
    this.kid = paserkId(publicKey);
    this.publicKey = publicKey;
    this.#privateKey = privateKey;
  }

  /** A getter on the prototype, so that logging, spreading or serializing the key does not reach it. */
  get privateKey(): KeyObject {
    return this.#privateKey;
  }
}

/**
 * Reads a signing key from PASERK `k4.secret` (the seed, then the public key).
 *
 * @throws {KeyError} if it is malformed, or if the halves are not one key pair: a signature with a public key that does
 *   not belong to the seed would leak the seed
 */
export function readSigningKey(paserk: string): SigningKey {
  const bytes = readPaserk('k4.secret', paserk);
  const seed = bytes.subarray(0, SEED_BYTES);
  const privateKey = privateKeyOf(seed);
  const publicBytes = publicBytesOf(privateKey);
  if (!publicBytes.equals(bytes.subarray(SEED_BYTES))) {
    throw new KeyError('the public half of this k4.secret key does not belong to its seed');
  }
  return new SigningKey(writePaserk('k4.public', publicBytes), privateKey);
}

/** Makes a new signing key from 32 random bytes, as PASERK `k4.secret`. */
export function generateSigningKey(): string {
  const seed = randomBytes(SEED_BYTES);
  return writePaserk('k4.secret', Buffer.concat([seed, publicBytesOf(privateKeyOf(seed))]));
}

const SEED_BYTES = 32;

/** RFC 8410 §7: the bytes before the seed in a PKCS #8 Ed25519 key. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b657004220420', 'hex');

function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEADER, seed]), format: 'der', type: 'pkcs8' });
}

/** RFC 8037 §2: `x` is the public key. */
function publicBytesOf(privateKey: KeyObject): Buffer {
  return Buffer.from(createPublicKey(privateKey).export({ format: 'jwk' }).x ?? '', 'base64url');
}

/** The keys whose tokens are accepted, by `kid`. There are several during a rotation. */
export type PublicKeys = ReadonlyMap<string, KeyObject>;

/**
 * Reads the accepted keys from a list of PASERK `k4.public`, separated by commas or white space.
 *
 * @throws {KeyError} if the list is empty or an entry is malformed or forgeable; the error names its position
 */
export function readPublicKeys(list: string): PublicKeys {
  const entries = list.split(/[\s,]+/).filter((entry) => entry !== '');
  if (entries.length === 0) throw new KeyError('no public key: expected one or more k4.public keys');
  return new Map(entries.map((entry, index) => readPublicKey(entry, index + 1)));
}

function readPublicKey(entry: string, place: number): [kid: string, key: KeyObject] {
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
 * (p and p + 1). All zeros, as in an unfilled placeholder, is one of them. With such a key, one signature that was made without
 * a secret fits at least every eighth message.
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

/**
 * The PASERK id `k4.pid.…` of a `k4.public` key, by which a token's footer names its key. It is BLAKE2b-264 over the header and
 * the whole PASERK (PASERK, operations/ID). OpenSSL has BLAKE2b only with 512 bits of output, so a library computes it.
 *
 * @throws {KeyError} if the argument is not a `k4.public` key
 */
export function paserkId(publicPaserk: string): string {
  readPaserk('k4.public', publicPaserk);
  return `k4.pid.${encodeBase64url(hash(Buffer.from(`k4.pid.${publicPaserk}`), ID_BYTES))}`;
}

const ID_BYTES = 33;

/** Bytes of key material after each header: a public key; a 32-byte seed and the public key. */
const KEY_BYTES = { 'k4.public': 32, 'k4.secret': 64 } as const;

export type PaserkType = keyof typeof KEY_BYTES;

/**
 * Serializes raw key bytes.
 *
 * @throws {KeyError} if their length is not the type's
 */
export function writePaserk(type: PaserkType, bytes: Uint8Array): string {
  if (bytes.length !== KEY_BYTES[type]) throw new KeyError(`a ${type} key has ${KEY_BYTES[type]} bytes`);
  return `${type}.${encodeBase64url(bytes)}`;
}

/**
 * Reads the raw key bytes of a PASERK of exactly this type.
 *
 * @throws {KeyError} if it is of another type or version, not canonical base64url, or of another length
 */
export function readPaserk(type: PaserkType, paserk: string): Buffer {
  const header = `${type}.`;
  if (!paserk.startsWith(header)) throw new KeyError(`expected a PASERK that starts with "${header}"`);
  const bytes = decodeBase64url(paserk.slice(header.length));
  if (bytes?.length !== KEY_BYTES[type]) {
    throw new KeyError(`expected "${header}" and ${KEY_BYTES[type]} bytes in base64url without padding`);
  }
  return bytes;
}
