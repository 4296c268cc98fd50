import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

/** The keys that seal stored secrets: the first seals, all unseal. Printing them shows only their ids. */
export class EncryptionKeys {
  /** Ids of all keys, the sealing one first. */
  readonly ids: readonly string[];
  readonly #byId: ReadonlyMap<string, KeyObject>;
  readonly #sealing: SealingKey;

  /** @throws {KeyError} if the map is empty */
  constructor(byId: ReadonlyMap<string, KeyObject>) {
    const [first] = byId;
    if (first === undefined) throw new KeyError('no encryption key');
    this.ids = [...byId.keys()];
    this.#byId = byId;
    this.#sealing = { id: first[0], key: first[1] };
  }

  /** The key that seals, with its id. */
  get sealing(): SealingKey {
    return this.#sealing;
  }

  get(id: string): KeyObject | undefined {
    return this.#byId.get(id);
  }
}

type SealingKey = { readonly id: string; readonly key: KeyObject };

/**
 * Reads `id:base64,…`: ids of 1–32 letters, digits, `_` and `-`, each once; keys of 32 bytes in base64.
 *
 * @throws {KeyError} if the list is empty or an entry is malformed; the error names the entry by its position
 */
export function readEncryptionKeys(text: string): EncryptionKeys {
  const byId = new Map<string, KeyObject>();
  for (const [index, entry] of text.split(',').entries()) {
    const { id, bytes } = readEntry(entry.trim(), index + 1);
    if (byId.has(id)) throw new KeyError(`encryption key ${index + 1}: its id is used twice`);
    byId.set(id, createSecretKey(bytes));
  }
  return new EncryptionKeys(byId);
}

/**
 * Makes a new key in the form that `readEncryptionKeys` reads.
 *
 * @throws {KeyError} if the id is malformed
 */
export function generateEncryptionKey(id = 'k1'): string {
  if (!isKeyId(id)) throw new KeyError(`an encryption key's id has ${ID_RULE}`);
  return `${id}:${randomBytes(KEY_BYTES).toString('base64')}`;
}

/** Whether a text can be the id of a key. An id contains neither `.` nor `:`, so either can follow it. */
export function isKeyId(id: string): boolean {
  return /^[\w-]{1,32}$/.test(id);
}

const KEY_BYTES = 32;
const ID_RULE = '1 to 32 letters, digits, "_" or "-"';

function readEntry(entry: string, place: number): { id: string; bytes: Buffer } {
  const colon = entry.indexOf(':');
  const id = entry.slice(0, Math.max(colon, 0));
  if (!isKeyId(id)) throw new KeyError(`encryption key ${place}: expected id:base64, the id of ${ID_RULE}`);
  const base64 = entry.slice(colon + 1);
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length !== KEY_BYTES || bytes.toString('base64') !== base64) {
    throw new KeyError(`encryption key ${place}: expected ${KEY_BYTES} bytes in base64 behind the id`);
  }
  return { id, bytes };
}

/**
 * A key in the configuration is missing or malformed. The message names the entry and the expected form. It never quotes
 * the entry, which may be a secret.
 */
export class KeyError extends Error {
  override readonly name = 'KeyError';
}
