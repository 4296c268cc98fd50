import { createCipheriv, createDecipheriv, createHmac, type KeyObject, randomBytes } from 'node:crypto';
import { decodeBase64url, encodeBase64url } from './base64url.ts';
import { type EncryptionKeys, isKeyId } from './encryption-keys.ts';
import { macKey } from './mac.ts';

/** NIST SP 800-38D §8.2.2 and §8.3: random nonces of 96 bits are good for 2^32 seals under one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts a text for storage with AES-256-GCM under the first key: `<key id>.<base64url nonce|ciphertext|tag>`.
 * A lone surrogate becomes U+FFFD, as in every UTF-8 encoder.
 *
 * @param associatedData the owner of the record, such as its id and account. `unseal` needs the same, so a record that was
 *   moved to another place does not unseal there
 */
export function seal(keys: EncryptionKeys, plaintext: string, associatedData: string): string {
  return sealWith(keys, plaintext, associatedData, randomBytes(NONCE_BYTES));
}

/**
 * Seals like `seal`, but the same text and associated data always give the same sealed text under one key. So it shows
 * whether two texts are the same, and nothing else about them. `unseal` decrypts it.
 *
 * The nonce is a MAC of text and associated data, as the synthetic IV of RFC 5297 §2.6 is: two texts get the same nonce
 * only if their MACs collide, which 2^32 seals make no likelier than with random nonces (NIST SP 800-38D §8.3).
 */
export function sealDeterministic(keys: EncryptionKeys, plaintext: string, associatedData: string): string {
  const mac = createHmac('sha256', macKey(keys.sealing.key, 'nonces of deterministic seals'));
  // The length keeps apart where the first text ends and the second begins.
  mac
    .update(`${Buffer.byteLength(associatedData)}.`)
    .update(associatedData)
    .update(plaintext);
  return sealWith(keys, plaintext, associatedData, mac.digest().subarray(0, NONCE_BYTES));
}

function sealWith(keys: EncryptionKeys, plaintext: string, associatedData: string, nonce: Buffer): string {
  const { id, key } = keys.sealing;
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(authenticated(id, associatedData));
  const ciphertext = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
  return `${id}.${encodeBase64url(Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]))}`;
}

/**
 * Decrypts a record of `seal` with the key that sealed it.
 *
 * @throws {SealError} `malformed`: not of the form that `seal` writes; `unknown_key`: sealed with a key that is not
 *   in the list; `not_authentic`: changed, or sealed for other associated data or with another key
 */
export function unseal(keys: EncryptionKeys, sealed: string, associatedData: string): string {
  const { id, body } = takeApart(sealed);
  const key = keys.get(id);
  if (key === undefined) throw new SealError('unknown_key');
  return decrypt(key, body, authenticated(id, associatedData));
}

/**
 * Unseals a record and seals it again with the first key: the second half of a rotation.
 *
 * @throws {SealError} as `unseal`
 */
export function reseal(keys: EncryptionKeys, sealed: string, associatedData: string): string {
  return seal(keys, unseal(keys, sealed, associatedData), associatedData);
}

/**
 * The id of the key that sealed a record. It shows which records a rotation still has to reseal.
 *
 * @throws {SealError} `malformed`
 */
export function sealedWith(sealed: string): string {
  return takeApart(sealed).id;
}

export type SealErrorCode = 'malformed' | 'unknown_key' | 'not_authentic';

/** A record cannot be unsealed. The error says why and quotes nothing of the record. */
export class SealError extends Error {
  override readonly name = 'SealError';
  readonly code: SealErrorCode;

  constructor(code: SealErrorCode) {
    super(`sealed record is refused: ${code}`);
    this.code = code;
  }
}

function takeApart(sealed: string): { id: string; body: Buffer } {
  const dot = sealed.indexOf('.');
  const id = sealed.slice(0, Math.max(dot, 0));
  const body = decodeBase64url(sealed.slice(dot + 1));
  if (!isKeyId(id) || body === undefined || body.length < NONCE_BYTES + TAG_BYTES) {
    throw new SealError('malformed');
  }
  return { id, body };
}

/** The key id is authenticated too, so that it cannot be changed. It contains no dot, so the two parts stay separate. */
function authenticated(id: string, associatedData: string): Buffer {
  return Buffer.from(`${id}.${associatedData}`);
}

function decrypt(key: KeyObject, body: Buffer, associatedData: Buffer): string {
  const nonce = body.subarray(0, NONCE_BYTES);
  // Without authTagLength, Node also accepts tags cut to 4 bytes.
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associatedData);
  decipher.setAuthTag(body.subarray(-TAG_BYTES));
  const plaintext = decipher.update(body.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([plaintext, decipher.final()]).toString('utf8');
  } catch {
    throw new SealError('not_authentic');
  }
}
