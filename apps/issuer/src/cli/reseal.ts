import { setTimeout as pause } from 'node:timers/promises';
import { type EncryptionKeys, SealError, sealedWith, unseal } from '@presign/crypto';
import { type CredentialCopy, type RedisClient, resealCopy, scanCredentials } from '@presign/limits';
import { mcpAuth } from '@presign/schema';
import { type Database, sqlState } from '@presign/schema/database';
import { credentialContext, credentials, oauthTokens } from '@presign/schema/tables';
import { and, asc, eq, gt, inArray, not, sql } from 'drizzle-orm';
import { handsInRefreshToken, originsOf } from '../issue/oauth-credential.ts';
import { type Command, CommandError, type Given, type Io, UsageError } from './command.ts';
import { FIRST_ID, PLACES, type Resealed, resealPlace } from './reseal-rows.ts';
import { encryptionKeysOf, withStores } from './stores.ts';

/**
 * A gateway may read a credential before it is resealed and write it to Redis afterwards, at most the timeouts of a
 * statement and a command later: 10 and 5 seconds.
 */
const WAIT_SECONDS = 20;
const BATCH = 500;

/** `reseal`: seals everything stored with the first of `ENCRYPTION_KEYS`, while the services run. */
export const RESEAL: Command = {
  name: 'reseal',
  summary: 'Seal everything stored with the first of ENCRYPTION_KEYS, while the services run',
  details: [
    'Issuers and gateways must already seal with that key (see encryption-keys rotate). You can stop the command and run it',
    'again at any time. Exit code 1: something is still sealed with another key.',
  ],
  options: {
    batch: { value: 'N', about: `rows that one statement writes; default ${BATCH}` },
    wait: {
      value: 'SECONDS',
      about: `pause before the copies in Redis, longer than a gateway takes to load a grant; default ${WAIT_SECONDS}`,
    },
  },
  run: async (given, io) => {
    const keys = encryptionKeysOf(io);
    const batch = wholeNumber(given, 'batch', BATCH, 1, 10_000);
    const wait = wholeNumber(given, 'wait', WAIT_SECONDS, 0, 3_600);
    const left = await withStores(io, async ({ db, redis }) => {
      const inRows = async () => {
        let left = 0;
        for (const place of PLACES) left += report(io, place.what, await resealPlace(db, keys, place, batch));
        return left + report(io, 'fingerprints of refresh tokens', await resealOrigins(db, keys, batch));
      };
      await inRows();
      io.note(`Waiting ${wait} s for gateways that read Postgres earlier…`);
      await pause(wait * 1000);
      // A service that still seals with another key may have written meanwhile.
      const again = await inRows();
      return again + report(io, 'copies in Redis', await resealCopies(db, redis, keys));
    });
    if (left > 0)
      throw new CommandError(`${left} could not be resealed: their key is not in ENCRYPTION_KEYS`);
    io.note(`Everything stored is sealed with ${keys.sealing.id}.`);
  },
};

function report(io: Io, what: string, { resealed, left }: Resealed): number {
  if (resealed > 0 || left > 0) io.note(`${what}: ${resealed} resealed${left > 0 ? `, ${left} not` : ''}`);
  return left;
}

function wholeNumber(given: Given, name: string, fallback: number, least: number, most: number): number {
  const text = given.text(name);
  if (text === undefined) return fallback;
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`--${name}: expected a whole number from ${least} to ${most}`);
}

/**
 * Replaces the fingerprints of refresh tokens by those under the first key. Otherwise a token that is handed in again
 * would count as a new one once the old key is gone.
 */
async function resealOrigins(db: Database, keys: EncryptionKeys, batch: number): Promise<Resealed> {
  const { credentialId: id, origin } = oauthTokens;
  let [resealed, left] = [0, 0];
  for (let after = FIRST_ID; ; ) {
    const rows = await db
      .select({ id, origin, accountId: credentials.accountId, sealed: credentials.sealed })
      .from(oauthTokens)
      .innerJoin(credentials, eq(credentials.id, id))
      .where(and(gt(id, after), not(sql`starts_with(${origin}, ${`${keys.sealing.id}.`})`)))
      .orderBy(asc(id))
      .limit(batch);
    const last = rows.at(-1);
    if (!last) return { resealed, left };
    after = last.id;
    for (const row of rows) {
      const next = originOf(keys, row);
      const stored = next !== undefined && (await storeOrigin(db, row, next));
      if (stored) resealed++;
      else left++;
    }
  }
}

type OriginRow = {
  readonly id: string;
  readonly origin: string;
  readonly accountId: string;
  readonly sealed: string;
};

/** Undefined when the credential cannot be unsealed. */
function originOf(keys: EncryptionKeys, { id, accountId, sealed }: OriginRow): string | undefined {
  try {
    const auth = mcpAuth.parse(JSON.parse(unseal(keys, sealed, credentialContext(accountId, id))));
    return handsInRefreshToken(auth) ? originsOf(keys, accountId, auth)[0] : undefined;
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}

/** SQLSTATE 23505, unique_violation: the token was also handed in to a service without the key of its old fingerprint. */
async function storeOrigin(db: Database, { id, origin }: OriginRow, next: string): Promise<boolean> {
  const at = and(eq(oauthTokens.credentialId, id), eq(oauthTokens.origin, origin));
  try {
    await db.update(oauthTokens).set({ origin: next }).where(at);
    return true;
  } catch (error) {
    if (sqlState(error) === '23505') return false;
    throw error;
  }
}

/**
 * Replaces every copy in Redis that another key has sealed by that of Postgres. Before, Postgres must be resealed, and
 * no gateway may be about to write an older copy.
 */
async function resealCopies(db: Database, redis: RedisClient, keys: EncryptionKeys): Promise<Resealed> {
  let [resealed, left] = [0, 0];
  for await (const copies of scanCredentials(redis)) {
    const stale = copies.filter((copy) => !isSealedWithFirst(keys, copy));
    const known = await readVersions(db, stale);
    for (const { partition, id } of stale) {
      const version = known.get(id);
      // Deleted meanwhile, or of another installation: it cannot be unsealed here.
      if (!version || version.sealed === '') continue;
      if (!isSealedWithFirst(keys, version)) left++;
      else if (await resealCopy(redis, { partition, ...version })) resealed++;
    }
  }
  return { resealed, left };
}

async function readVersions(db: Database, copies: readonly CredentialCopy[]) {
  const { id, version, sealed } = credentials;
  const ids = [...new Set(copies.map((copy) => copy.id))];
  const rows = await db.select({ id, version, sealed }).from(credentials).where(inArray(id, ids));
  return new Map(rows.map((row) => [row.id, row]));
}

function isSealedWithFirst(keys: EncryptionKeys, { sealed }: { readonly sealed: string }): boolean {
  try {
    return sealedWith(sealed) === keys.sealing.id;
  } catch (error) {
    if (error instanceof SealError) return false;
    throw error;
  }
}
