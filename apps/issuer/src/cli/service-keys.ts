import { generateSigningKey, paserkId, readPublicKeys, readSigningKey } from '@presign/crypto';
import { parseVariable, readVariable } from '@presign/schema';
import { grants } from '@presign/schema/tables';
import { and, isNull, lt, max } from 'drizzle-orm';
import { type Command, CommandError, type Given, type Io, UsageError } from './command.ts';
import { withDatabase } from './stores.ts';

/** `token-keys …`: what tokens are signed with, and how to change it while URLs are in use. */
export const TOKEN_KEYS: readonly Command[] = [
  {
    name: 'token-keys rotate',
    summary: 'Print a new signing key for tokens, and the steps to change over to it',
    details: [
      'Nothing is changed by it. It wants the TOKEN_SIGNING_KEY or TOKEN_PUBLIC_KEYS of what runs: the list of public keys',
      'that is printed has those, too, so that URLs that are issued already go on working.',
    ],
    options: { first: { about: 'there is no key yet' } },
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
    summary: 'Tell which keys sign and verify tokens, and when older ones may be removed',
    options: {
      before: {
        value: 'TIME',
        about: 'when issuers changed to the new key, such as 2026-03-01T12:00:00Z; else now',
      },
    },
    run: async (given, io) => {
      const before = readTime(given);
      const signs = readVariable(io.env, 'TOKEN_SIGNING_KEY', undefined);
      if (signs !== undefined) io.out(`signs     ${signingKeyOf(signs).kid}`);
      for (const key of acceptedKeys(io)) io.out(`verifies  ${paserkId(key)}`);
      const [row] = await withDatabase(io, (db) =>
        db
          .select({ last: max(grants.expiresAt) })
          .from(grants)
          .where(and(lt(grants.issuedAt, before), isNull(grants.revokedAt))),
      );
      const until = row?.last && row.last.getTime() > Date.now() ? row.last.toISOString() : undefined;
      io.out(
        until === undefined
          ? `No URL issued before ${before.toISOString()} is valid any more.`
          : lastOf(before, until),
      );
    },
  },
];

const NONE_YET =
  'TOKEN_PUBLIC_KEYS or TOKEN_SIGNING_KEY is needed, as issuer and gateways have it: without the keys in use in the list every URL that is issued would stop. With --first there are none';

const lastOf = (before: Date, until: string) =>
  `The last URL issued before ${before.toISOString()} expires at ${until}: keep its key until then.`;

const signingKeyOf = (text: string) => parseVariable('TOKEN_SIGNING_KEY', () => readSigningKey(text));

/** Public keys whose tokens are accepted now, each once. */
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
  `The new key is ${kid}. Change over to it in this order, one process after another:`,
  '1. Add: give every gateway and every issuer the TOKEN_PUBLIC_KEYS above.',
  '2. Sign: when all have it, give every issuer the TOKEN_SIGNING_KEY above, and note the time.',
  '3. Remove: token-keys status --before TIME tells when the last URL of the old key expires. After that take the old key',
  '   out of TOKEN_PUBLIC_KEYS everywhere.',
];
