import { isUtf8 } from 'node:buffer';
import { isSignedBy, parseMessage, signMessage } from './message.ts';
import type { PublicKeys } from './public-keys.ts';
import type { SigningKey } from './signing-key.ts';

/** Longest token, in characters: what leaves room for the rest of a URL that common proxies still take. */
export const MAX_TOKEN_CHARS = 3072;

/**
 * Signs claims as a PASETO `v4.public` token whose footer names the key. The same claims give the same
 * token, in whatever order their keys stand: Ed25519 is deterministic and the JSON is written sorted.
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

/** Why a token is refused. `unknown_key`: well formed, but signed with a key that is not (or no longer) ours. */
export type TokenRefusal = 'too_long' | 'malformed' | 'unknown_key' | 'bad_signature';

export type VerifiedToken =
  | { readonly ok: true; readonly claims: unknown; readonly kid: string }
  | { readonly ok: false; readonly reason: TokenRefusal };

/**
 * Checks that a token was signed by one of the keys, cheapest test first. The claims are a JSON object as it
 * was signed; its fields, expiry and audience are the caller's to judge. Never throws.
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
  // Nothing is parsed as JSON before its signature was found good.
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
 * The footer exactly as `signToken` writes it, of one length: matched, not parsed, since it is read before the
 * signature is checked.
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
