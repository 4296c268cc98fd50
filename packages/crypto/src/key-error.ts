/**
 * A key in the configuration is missing or malformed. The message names the entry and the expected form. It never quotes
 * the entry, which may be a secret.
 */
export class KeyError extends Error {
  override readonly name = 'KeyError';
}
