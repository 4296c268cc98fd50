import { type KeyObject, sign, verify } from 'node:crypto';
import { decodeBase64url, encodeBase64url } from './base64url.ts';
import { pae } from './pae.ts';

/** PASETO Version 4: the header binds version and purpose, and is signed with the message. */
const HEADER = 'v4.public.';
const HEADER_BYTES = Buffer.from(HEADER);
const SIGNATURE_BYTES = 64;
const NOTHING = new Uint8Array(0);

/**
 * Signs any bytes as PASETO `v4.public`: what lies under `signToken`, with the protocol's optional parts.
 *
 * @param implicitAssertion bytes that are signed but not carried; the verifier must know them
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
 * Verifies a PASETO `v4.public` token with one key and gives back what was signed, uninterpreted.
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

/** Takes a token apart, believing nothing in it yet; undefined unless it is canonical `v4.public`. */
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
