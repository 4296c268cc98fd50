import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Names product and kind, for people and for secret scanners; `_` and base62 are one word to a double click. */
const PREFIX = 'presign_sk_';
const SECRET_BYTES = 32;
/** 62^43 > 2^256 and 62^6 > 2^32, so that every value fits and every key has the same length. */
const SECRET_CHARS = 43;
const CHECKSUM_CHARS = 6;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${SECRET_CHARS + CHECKSUM_CHARS}}$`);

/**
 * Makes an API key: `presign_sk_`, 256 random bits in base62, and a CRC-32 of all before it, by which scanners
 * know a real key and services a mistyped one without asking the database.
 */
export function generateApiKey(): string {
  const secret = BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`);
  const key = PREFIX + base62(secret, SECRET_CHARS);
  return key + checksum(key);
}

/** Tells whether a text has the form and checksum of a key made here; says nothing about its being valid. */
export function looksLikeApiKey(key: string): boolean {
  if (!FORM.test(key)) return false;
  return checksum(key.slice(0, -CHECKSUM_CHARS)) === key.slice(-CHECKSUM_CHARS);
}

/**
 * What is stored for an API key: its SHA-256 in hex. A slow hash guards secrets that can be guessed; a key of
 * 256 random bits cannot, and a fast one can be looked up by an index. For keys made by `generateApiKey`.
 */
export function hashApiKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** A key's prefix and last four characters, by which its owner knows it; of any other text nothing is shown. */
export function apiKeyHint(key: string): string {
  return looksLikeApiKey(key) ? `${PREFIX}…${key.slice(-4)}` : '…';
}

/** Compares two secrets in a time that tells neither where they differ nor how long the other one is. */
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
