import { createHmac, hkdfSync, type KeyObject } from 'node:crypto';
import { sameSecret } from './api-key.ts';
import { type EncryptionKeys, isKeyId } from './encryption-keys.ts';

/**
 * A keyed fingerprint of data that is not stored: `<key id>.<base64url HMAC-SHA256>`. Unlike a plain hash, it does not let a
 * reader of the database guess the data.
 *
 * @param purpose separates uses: fingerprints for different purposes are unrelated
 */
export function mac(keys: EncryptionKeys, purpose: string, data: string | Uint8Array): string {
  const { id, key } = keys.sealing;
  return macWith(id, key, purpose, data);
}

/**
 * Compares data with a fingerprint, in constant time, under the key that made it.
 *
 * @returns `unknown_key` when that key is no longer in the list, so the data cannot be compared;
 *   `different` also for a malformed fingerprint
 */
export function checkMac(
  keys: EncryptionKeys,
  purpose: string,
  data: string | Uint8Array,
  expected: string,
): 'same' | 'different' | 'unknown_key' {
  const dot = expected.indexOf('.');
  const id = expected.slice(0, Math.max(dot, 0));
  if (!isKeyId(id)) return 'different';
  const key = keys.get(id);
  if (key === undefined) return 'unknown_key';
  return sameSecret(macWith(id, key, purpose, data), expected) ? 'same' : 'different';
}

function macWith(id: string, key: KeyObject, purpose: string, data: string | Uint8Array): string {
  return `${id}.${createHmac('sha256', macKey(key, purpose)).update(data).digest('base64url')}`;
}

/**
 * Makes the same 32 secret bytes again from what they belong to, so that they need not be stored.
 *
 * @param fingerprint one of `mac`: names the key
 * @param salt random, so that the same context gives other bytes another time (RFC 5869 §3.1)
 * @returns undefined when that key is no longer in the list
 */
export function deriveBytes(
  keys: EncryptionKeys,
  fingerprint: string,
  salt: string,
  context: readonly string[],
): Uint8Array | undefined {
  const key = keys.get(fingerprint.slice(0, Math.max(0, fingerprint.indexOf('.'))));
  return key && new Uint8Array(hkdfSync('sha256', key, salt, JSON.stringify(['secret', ...context]), 32));
}

/** RFC 5869 §3.2: one secret, and a key for each purpose named in `info`. No salt, because the secret is random. */
export function macKey(key: KeyObject, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, '', purpose, 32));
}
