import { hash } from '@stablelib/blake2b';
import { decodeBase64url, encodeBase64url } from './base64url.ts';
import { KeyError } from './key-error.ts';

/**
 * The PASERK id `k4.pid.…` of a `k4.public` key: what a token's footer names its key by.
 * BLAKE2b-264 over the header and the whole PASERK (PASERK, operations/ID); OpenSSL offers BLAKE2b only with
 * 512 bits of output, hence the library.
 *
 * @throws {KeyError} if the argument is not a `k4.public` key
 */
export function paserkId(publicPaserk: string): string {
  readPaserk('k4.public', publicPaserk);
  return `k4.pid.${encodeBase64url(hash(Buffer.from(`k4.pid.${publicPaserk}`), ID_BYTES))}`;
}

const ID_BYTES = 33;

/** Bytes of key material behind each header: an Ed25519 public key; its 32-byte seed, then the public key. */
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
