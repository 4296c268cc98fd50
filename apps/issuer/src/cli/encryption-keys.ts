import { generateEncryptionKey, KeyError } from '@presign/crypto';
import { readVariable } from '@presign/schema';
import { type Command, UsageError } from './command.ts';
import { encryptionKeysOf } from './stores.ts';

/** `encryption-keys …`: what credentials are sealed with. */
export const ENCRYPTION_KEYS: readonly Command[] = [
  {
    name: 'encryption-keys rotate',
    summary: 'Print a new encryption key, and the steps to change over to it',
    details: ['Nothing is changed by it. It wants ENCRYPTION_KEYS as it is now.'],
    arguments: ['NEW_ID'],
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      const { ids } = encryptionKeysOf(io);
      if (ids.includes(id)) throw new UsageError(`NEW_ID: ENCRYPTION_KEYS has a key ${id} already`);
      const key = newKey(id);
      const now = readVariable(io.env, 'ENCRYPTION_KEYS');
      io.out(`ENCRYPTION_KEYS=${now},${key}`);
      io.out(`ENCRYPTION_KEYS=${key},${now}`);
      for (const line of STEPS) io.note(line);
    },
  },
];

function newKey(id: string): string {
  try {
    return generateEncryptionKey(id);
  } catch (error) {
    throw error instanceof KeyError ? new UsageError(`NEW_ID: ${error.message}`) : error;
  }
}

const STEPS: readonly string[] = [
  '',
  'Change over in this order, one process after another:',
  '1. Open: give every issuer and every gateway the first line: all of them can open what the new key seals.',
  '2. Seal: when all have it, give them the second line: the new key seals from then on.',
  '3. Reseal: when all have that, run reseal with the second line.',
  '4. Remove: a day later take the old keys out. Until then repeated Idempotency-Keys and sessions of MCP clients that',
  '   began before step 2 still need them.',
];
