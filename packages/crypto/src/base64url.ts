/**
 * Decodes canonical base64url: the URL-safe alphabet, no padding, unused trailing bits zero (RFC 4648 §3.2,
 * §3.5). Every byte string has exactly one such spelling, so one token has exactly one text.
 *
 * @returns the bytes, or undefined when the text is anything but their canonical spelling
 */
export function decodeBase64url(text: string): Buffer | undefined {
  // Node's decoder skips unknown characters. Encoding the bytes again shows whether it did.
  const bytes = Buffer.from(text, 'base64url');
  return encodeBase64url(bytes) === text ? bytes : undefined;
}

/** Encodes bytes as base64url without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
}
