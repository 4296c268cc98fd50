import {
  generateEncryptionKey,
  generateSigningKey,
  KeyError,
  paserkId,
  readPublicKeys,
  readSigningKey,
} from '@presign/crypto';
import { grants } from '@presign/schema/tables';
import { parseVariable, readVariable } from '@presign/service';
import { and, isNull, lt, sql } from 'drizzle-orm';
import { type Command, CommandError, type Given, type Io, UsageError } from './command.ts';
import { encryptionKeysOf, withDatabase } from './stores.ts';

const LAST_END = sql<Date | null>`max(coalesce(${grants.signedUntil}, ${grants.expiresAt}))`.mapWith(
  grants.expiresAt,
);

/** `token-keys …`: the keys that sign tokens, and how to change them while URLs are in use. */
export const TOKEN_KEYS: readonly Command[] = [
  {
    name: 'token-keys rotate',
    summary: 'Print a new signing key for tokens, and the steps to switch to it',
    details: [
      'The command changes nothing. It needs the current TOKEN_SIGNING_KEY or TOKEN_PUBLIC_KEYS: the printed list of public',
      'keys includes the current ones, so that URLs that are already issued keep working.',
    ],
    options: { first: { about: 'confirms that there is no key yet' } },
    run: async (given, io) => {
      const accepted = acceptedKeys(io);
      if (accepted.length === 0 && !given.flag('first')) throw new CommandError(NONE_YET);
      const signingKey = generateSigningKey();
      const { publicKey, kid } = readSigningKey(signingKey);
      const list = [publicKey, ...accepted].join(',');
      io.out(`TOKEN_SIGNING_KEY=${signingKey}`);
      io.out(`TOKEN_PUBLIC_KEYS=${list}`);
      for (const line of stepsTo(kid)) io.note(line);
    },
  },
  {
    name: 'token-keys status',
    summary: 'Show which keys sign and verify tokens, and when older ones can be removed',
    options: {
      before: {
        value: 'TIME',
        about: 'when issuers switched to the new key, such as 2026-03-01T12:00:00Z; without it now',
      },
    },
    run: async (given, io) => {
      const before = readTime(given);
      const signs = readVariable(io.env, 'TOKEN_SIGNING_KEY', undefined);
      if (signs !== undefined) io.out(`signs     ${signingKeyOf(signs).kid}`);
      for (const key of acceptedKeys(io)) io.out(`verifies  ${paserkId(key)}`);
      const [row] = await withDatabase(io, (db) =>
        db
          // An end that was lowered can be raised again, up to the end of the token.
          .select({ last: LAST_END })
          .from(grants)
          .where(and(lt(grants.issuedAt, before), isNull(grants.revokedAt))),
      );
      const until = row?.last && row.last.getTime() > Date.now() ? row.last.toISOString() : undefined;
      io.out(
        until === undefined
          ? `No URL issued before ${before.toISOString()} is still valid.`
          : lastOf(before, until),
      );
    },
  },
];

const NONE_YET =
  'TOKEN_PUBLIC_KEYS or TOKEN_SIGNING_KEY is needed, with the value of issuer and gateways: a list without the current keys would end every issued URL. If there is no key yet, add --first';

const lastOf = (before: Date, until: string) =>
  `The last URL issued before ${before.toISOString()} expires at ${until}: keep its key until then.`;

const signingKeyOf = (text: string) => parseVariable('TOKEN_SIGNING_KEY', () => readSigningKey(text));

/** The public keys whose tokens are accepted now, without duplicates. */
function acceptedKeys({ env }: Io): readonly string[] {
  const signs = readVariable(env, 'TOKEN_SIGNING_KEY', undefined);
  const verifies = readVariable(env, 'TOKEN_PUBLIC_KEYS', undefined);
  if (verifies !== undefined) parseVariable('TOKEN_PUBLIC_KEYS', () => readPublicKeys(verifies));
  const own = signs === undefined ? [] : [signingKeyOf(signs).publicKey];
  return [...new Set([...own, ...(verifies?.split(/[\s,]+/).filter(Boolean) ?? [])])];
}

function readTime(given: Given): Date {
  const text = given.text('before');
  if (text === undefined) return new Date();
  const time = new Date(text);
  if (Number.isNaN(time.getTime()))
    throw new UsageError('--before: expected a time, such as 2026-03-01T12:00:00Z');
  return time;
}

const stepsTo = (kid: string): readonly string[] => [
  '',
  `The new key is ${kid}. Switch to it in this order, one process after another:`,
  '1. Add: give every gateway and every issuer the TOKEN_PUBLIC_KEYS above.',
  '2. Sign: once all have it, give every issuer the TOKEN_SIGNING_KEY above, and note the time.',
  '3. Remove: token-keys status --before TIME shows when the last URL of the old key expires. After that, remove the old',
  '   key from TOKEN_PUBLIC_KEYS everywhere.',
];

/** `encryption-keys …`: the keys that seal credentials. */
export const ENCRYPTION_KEYS: readonly Command[] = [
  {
    name: 'encryption-keys rotate',
    summary: 'Print a new encryption key, and the steps to switch to it',
    details: ['The command changes nothing. It needs the current ENCRYPTION_KEYS.'],
    arguments: ['NEW_ID'],
    run: async (given, io) => {
      const [id = ''] = given.arguments;
      const { ids } = encryptionKeysOf(io);
      if (ids.includes(id)) throw new UsageError(`NEW_ID: ENCRYPTION_KEYS already has a key ${id}`);
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
  'Switch in this order, one process after another:',
  '1. Unseal: give every issuer and every gateway the first line, so that all of them can unseal what the new key seals.',
  '2. Seal: once all have it, give them the second line. The new key seals from then on.',
  '3. Reseal: once all have that, run reseal with the second line.',
  '4. Remove: a day later, remove the old keys. Until then, repeated Idempotency-Keys and sessions of MCP clients that',
  '   began before step 2 need them.',
];
