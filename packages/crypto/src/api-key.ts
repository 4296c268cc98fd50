import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Names product and kind, for people and secret scanners. A double click selects the whole key: `_` and base62 are one word. */
const PREFIX = 'presign_sk_';
const SECRET_BYTES = 32;
/** 62^43 > 2^256 and 62^6 > 2^32, so that every value fits and every key has the same length. */
const SECRET_CHARS = 43;
const CHECKSUM_CHARS = 6;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${SECRET_CHARS + CHECKSUM_CHARS}}$`);

/**
 * Makes an API key: `presign_sk_`, 256 random bits in base62, and a CRC-32 of both. By the checksum, scanners recognise a
 * real key, and services a mistyped one without a query.
 * @param bytes 32 secret bytes
 */
export function generateApiKey(bytes: Uint8Array = randomBytes(SECRET_BYTES)): string {
  const secret = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  const key = PREFIX + base62(secret, SECRET_CHARS);
  return key + checksum(key);
}

/** Whether a text has the form and checksum of an API key. It may still not be valid. */
export function looksLikeApiKey(key: string): boolean {
  if (!FORM.test(key)) return false;
  return checksum(key.slice(0, -CHECKSUM_CHARS)) === key.slice(-CHECKSUM_CHARS);
}

/**
 * The stored form of an API key: its SHA-256 in hex. A slow hash would protect secrets that can be guessed. 256 random bits
 * cannot be guessed, and a fast hash can be found by an index. Only for keys of `generateApiKey`.
 */
export function hashApiKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** A key's prefix and last four characters, to recognise it. For any other text, only `…`. */
export function apiKeyHint(key: string): string {
  return looksLikeApiKey(key) ? `${PREFIX}…${key.slice(-4)}` : '…';
}

/** Compares two secrets in a time that depends neither on where they differ nor on the length of the second. */
export function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = DIGITS.charAt(Number(rest % 62n)) + text;
  return text;
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), CHECKSUM_CHARS);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
