import { isUtf8 } from 'node:buffer';
import { type KeyObject, sign, verify } from 'node:crypto';
import { decodeBase64url, encodeBase64url } from './base64url.ts';
import type { PublicKeys, SigningKey } from './token-keys.ts';

/** The longest token, in characters. The rest of the URL still fits into what common proxies accept. */
export const MAX_TOKEN_CHARS = 3072;

/**
 * Signs claims as a PASETO `v4.public` token whose footer names the key. The same claims give the same
 * token in any order of their keys, because Ed25519 is deterministic and the JSON is sorted.
 * Anyone can read the claims.
 *
 * @throws {RangeError} if the token would be longer than MAX_TOKEN_CHARS, which no verifier accepts
 */
export function signToken(claims: Record<string, unknown>, key: SigningKey): string {
  const payload = Buffer.from(sortedJson(claims));
  const token = signMessage(payload, key.privateKey, Buffer.from(JSON.stringify({ kid: key.kid })));
  if (token.length > MAX_TOKEN_CHARS) {
    throw new RangeError(`token of ${token.length} characters, at most ${MAX_TOKEN_CHARS} are accepted`);
  }
  return token;
}

/** Why a token is refused. `unknown_key`: well formed, but signed with a key that is not in the list. */
export type TokenRefusal = 'too_long' | 'malformed' | 'unknown_key' | 'bad_signature';

export type VerifiedToken =
  | { readonly ok: true; readonly claims: unknown; readonly kid: string }
  | { readonly ok: false; readonly reason: TokenRefusal };

/**
 * Checks that one of the keys signed a token, with the cheapest test first. The claims are the signed JSON object. The caller
 * checks its fields, expiry and audience. Never throws.
 */
export function verifyToken(token: string, keys: PublicKeys): VerifiedToken {
  if (token.length > MAX_TOKEN_CHARS) return refused('too_long');
  const parsed = parseMessage(token);
  if (parsed === undefined) return refused('malformed');
  const kid = kidOf(parsed.footer);
  if (kid === undefined) return refused('malformed');
  const publicKey = keys.get(kid);
  if (publicKey === undefined) return refused('unknown_key');
  if (!isSignedBy(publicKey, parsed)) return refused('bad_signature');
  // Nothing is parsed as JSON before its signature was verified.
  const claims = jsonObject(parsed.message);
  return claims === undefined ? refused('malformed') : { ok: true, claims, kid };
}

function sortedJson(claims: Record<string, unknown>): string {
  return JSON.stringify(claims, (_key, value: unknown) => (isObject(value) ? sorted(value) : value));
}

function sorted(value: object): object {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refused(reason: TokenRefusal): VerifiedToken {
  return { ok: false, reason };
}

/**
 * The footer exactly as `signToken` writes it. It is matched and not parsed, because it is read before the signature is
 * checked.
 */
const FOOTER = /^\{"kid":"(k4\.pid\.[\w-]{44})"\}$/;

function kidOf(footer: Buffer): string | undefined {
  return FOOTER.exec(footer.toString('latin1'))?.[1];
}

function jsonObject(bytes: Buffer): object | undefined {
  if (!isUtf8(bytes)) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** PASETO Version 4: the header binds version and purpose, and is signed with the message. */
const HEADER = 'v4.public.';
const HEADER_BYTES = Buffer.from(HEADER);
const SIGNATURE_BYTES = 64;
const NOTHING = new Uint8Array(0);

/**
 * Signs any bytes as PASETO `v4.public`. `signToken` uses it without the optional parts of the protocol.
 *
 * @param implicitAssertion bytes that are signed but not in the token; the verifier must know them
 */
export function signMessage(
  message: Uint8Array,
  privateKey: KeyObject,
  footer: Uint8Array = NOTHING,
  implicitAssertion: Uint8Array = NOTHING,
): string {
  const signature = sign(null, pae([HEADER_BYTES, message, footer, implicitAssertion]), privateKey);
  const body = encodeBase64url(Buffer.concat([message, signature]));
  return footer.length === 0 ? `${HEADER}${body}` : `${HEADER}${body}.${encodeBase64url(footer)}`;
}

export type VerifiedMessage = { readonly message: Buffer; readonly footer: Buffer };

/**
 * Verifies a PASETO `v4.public` token with one key, and returns the signed bytes.
 *
 * @returns the message and footer, or undefined when the token is malformed or not signed by this key
 */
export function verifyMessage(
  token: string,
  publicKey: KeyObject,
  implicitAssertion: Uint8Array = NOTHING,
): VerifiedMessage | undefined {
  const parsed = parseMessage(token);
  if (parsed === undefined || !isSignedBy(publicKey, parsed, implicitAssertion)) return undefined;
  return { message: parsed.message, footer: parsed.footer };
}

export type ParsedMessage = VerifiedMessage & { readonly signature: Buffer };

/** The parts of a token that is not verified yet. Undefined unless it is canonical `v4.public`. */
export function parseMessage(token: string): ParsedMessage | undefined {
  if (!token.startsWith(HEADER)) return undefined;
  const [bodyText = '', footerText, ...more] = token.slice(HEADER.length).split('.');
  // An empty footer is written without its dot, so "body." would be a second spelling of "body".
  if (footerText === '' || more.length > 0) return undefined;
  const body = decodeBase64url(bodyText);
  const footer = decodeBase64url(footerText ?? '');
  if (body === undefined || footer === undefined || body.length < SIGNATURE_BYTES) return undefined;
  const message = body.subarray(0, -SIGNATURE_BYTES);
  return { message, footer, signature: body.subarray(-SIGNATURE_BYTES) };
}

/** RFC 8032 §5.1.7, by OpenSSL, which also refuses a signature whose S is not reduced. */
export function isSignedBy(
  publicKey: KeyObject,
  { message, footer, signature }: ParsedMessage,
  implicitAssertion: Uint8Array = NOTHING,
): boolean {
  return verify(null, pae([HEADER_BYTES, message, footer, implicitAssertion]), publicKey, signature);
}

/**
 * PASETO's pre-authentication encoding (PASETO Common, "PAE Definition"): the number of pieces, then the
 * length and bytes of each piece, so that bytes cannot move from one piece to the next unnoticed.
 */
export function pae(pieces: readonly Uint8Array[]): Buffer {
  const size = pieces.reduce((sum, piece) => sum + LENGTH_BYTES + piece.length, LENGTH_BYTES);
  const out = Buffer.alloc(size);
  let at = writeLength(out, pieces.length, 0);
  for (const piece of pieces) {
    at = writeLength(out, piece.length, at);
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

const LENGTH_BYTES = 8;

/** A little-endian 64-bit length. No buffer is longer than 48 bits, and `out` starts as zeros. */
function writeLength(out: Buffer, length: number, at: number): number {
  out.writeUIntLE(length, at, 6);
  return at + LENGTH_BYTES;
}
