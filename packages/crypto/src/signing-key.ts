import { createPrivateKey, createPublicKey, type KeyObject, randomBytes } from 'node:crypto';
import { KeyError } from './key-error.ts';
import { paserkId, readPaserk, writePaserk } from './paserk.ts';

/** An Ed25519 key that signs tokens. Printed or turned into JSON it shows its public half alone. */
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
 * @throws {KeyError} if it is malformed or the two halves are not of one key pair: signing under a public
 *   key that does not belong to the seed would leak the seed
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

/** RFC 8410 §7: what stands before the seed in a PKCS #8 Ed25519 key. */
const PKCS8_HEADER = Buffer.from('302e020100300506032b657004220420', 'hex');

function privateKeyOf(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8_HEADER, seed]), format: 'der', type: 'pkcs8' });
}

/** RFC 8037 §2: `x` is the public key. */
function publicBytesOf(privateKey: KeyObject): Buffer {
  return Buffer.from(createPublicKey(privateKey).export({ format: 'jwk' }).x ?? '', 'base64url');
}
