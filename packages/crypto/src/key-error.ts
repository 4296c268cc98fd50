/**
 * A key in the configuration is missing or malformed. The message says which entry and what was expected;
 * it never quotes what was read, since that may be a secret.
 */
export class KeyError extends Error {
  override readonly name = 'KeyError';
}
