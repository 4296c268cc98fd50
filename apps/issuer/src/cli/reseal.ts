import { setTimeout as pause } from 'node:timers/promises';
import { type EncryptionKeys, reseal, SealError, sealedWith, unseal } from '@presign/crypto';
import {
  type CredentialCopy,
  dropSeeds,
  type RedisClient,
  resealCopy,
  scanCredentials,
} from '@presign/limits';
import { mcpAuth } from '@presign/schema';
import { credentialContext, credentials, oauthTokens, oauthTokensContext } from '@presign/schema/tables';
import { webhookContext, webhooks } from '@presign/schema/webhook-tables';
import { type Environment, readRedisTimeouts } from '@presign/service';
import { type Database, readDatabaseSettings, sqlState } from '@presign/service/database';
import { and, asc, eq, gt, inArray, isNotNull, ne, not, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import { handsInRefreshToken, originsOf } from '../issue/oauth-credential.ts';
import { type Command, CommandError, type Given, type Io, UsageError } from './command.ts';
import { encryptionKeysOf, withStores } from './stores.ts';

/**
 * How long `reseal` waits by default. A gateway may read a credential before it is resealed, from Postgres or from a seed, and
 * write it to Redis afterwards, at most the time limits of a statement and a command later.
 * @param env has the limits of the gateways, too
 */
export function resealWaitSeconds(env: Environment): number {
  const { statementSeconds } = readDatabaseSettings(env);
  return (statementSeconds || UNBOUNDED_SECONDS) + readRedisTimeouts(env).commandMs / 1_000 + SPARE_SECONDS;
}

/** For statements without a limit: the longest limit that there is. */
const UNBOUNDED_SECONDS = 60;
const SPARE_SECONDS = 5;
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
      about: `pause before the copies in Redis, longer than a gateway takes to load a grant; default: the time limits of Postgres and Redis and ${SPARE_SECONDS} s, so 20 unless they are set`,
    },
  },
  run: async (given, io) => {
    const keys = encryptionKeysOf(io);
    const batch = wholeNumber(given, 'batch', BATCH, 1, 10_000);
    const wait = wholeNumber(given, 'wait', resealWaitSeconds(io.env), 0, 3_600);
    const left = await withStores(io, async ({ db, redis }) => {
      const inRows = async () => {
        let left = 0;
        for (const place of PLACES) left += report(io, place.what, await resealPlace(db, keys, place, batch));
        return left + report(io, 'fingerprints of refresh tokens', await resealOrigins(db, keys, batch));
      };
      await inRows();
      // Seeds that were sealed with an older key. New ones are not.
      await dropSeeds(redis);
      io.note(`Waiting ${wait} s for gateways that read Postgres earlier…`);
      await pause(wait * 1000);
      // A service that still seals with another key may have written meanwhile.
      const again = await inRows();
      return again + report(io, 'copies in Redis', await resealCopies(db, redis, keys));
    });
    if (left > 0)
      throw new CommandError(
        `${left} stored ${left === 1 ? 'value' : 'values'} could not be resealed, because ENCRYPTION_KEYS lacks the old key. Add that key and run the command again.`,
      );
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

/** How many values were resealed, and how many could not be. */
type Resealed = { readonly resealed: number; readonly left: number };

/** A row with a sealed value, and the context that it was sealed for. */
type SealedRow = { readonly id: string; readonly sealed: string | null; readonly context: string };
type Change = { readonly id: string; readonly before: string; readonly after: string };

/** A column of sealed values. */
export type Place = {
  readonly what: string;
  /** Reads the next rows after an id, in the order of ids, that another key has sealed. */
  readonly next: (db: Database, after: string, prefix: string, most: number) => Promise<SealedRow[]>;
  /** Writes the resealed values where nothing was written meanwhile. Returns how many. */
  readonly store: (db: Database, changes: readonly Change[]) => Promise<number>;
};

/**
 * Reseals the rows of one place until none is left that another key has sealed. Rotations, refreshes and other
 * resealings may run at the same time: their writes are kept, and the row is read again.
 */
async function resealPlace(
  db: Database,
  keys: EncryptionKeys,
  place: Place,
  batch: number,
): Promise<Resealed> {
  const prefix = `${keys.sealing.id}.`;
  let resealed = 0;
  for (;;) {
    let [missed, left] = [0, 0];
    for (let after = FIRST_ID; ; ) {
      const rows = await place.next(db, after, prefix, batch);
      const last = rows.at(-1);
      if (!last) break;
      after = last.id;
      const changes = rows.flatMap((row) => changeOf(keys, row));
      const stored = changes.length === 0 ? 0 : await place.store(db, changes);
      resealed += stored;
      missed += changes.length - stored;
      left += rows.length - changes.length;
    }
    if (missed === 0) return { resealed, left };
  }
}

/** Less than the id of any row. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

function changeOf(keys: EncryptionKeys, { id, sealed, context }: SealedRow): Change[] {
  try {
    return [{ id, before: sealed ?? '', after: reseal(keys, sealed ?? '', context) }];
  } catch (error) {
    if (error instanceof SealError) return [];
    throw error;
  }
}

/** All places of sealed values in Postgres. */
const PLACES: readonly Place[] = [
  {
    what: 'credentials',
    next: async (db, after, prefix, most) => {
      const rows = await db
        .select()
        .from(credentials)
        // A deleted credential is empty.
        .where(
          and(gt(credentials.id, after), ne(credentials.sealed, ''), isStale(credentials.sealed, prefix)),
        )
        .orderBy(asc(credentials.id))
        .limit(most);
      return rows.map((row) => ({ ...row, context: credentialContext(row.accountId, row.id) }));
    },
    store: async (db, changes) => {
      const { id, sealed } = credentials;
      const from = listOf(changes);
      return (await db.update(credentials).set(AFTER).from(from).where(isAt(id, sealed)).returning({ id }))
        .length;
    },
  },
  {
    what: 'OAuth tokens',
    next: async (db, after, prefix, most) => {
      const { credentialId: id, sealed } = oauthTokens;
      const rows = await db
        .select({ id, sealed, accountId: credentials.accountId })
        .from(oauthTokens)
        .innerJoin(credentials, eq(credentials.id, id))
        .where(and(gt(id, after), isStale(sealed, prefix)))
        .orderBy(asc(id))
        .limit(most);
      return rows.map((row) => ({ ...row, context: oauthTokensContext(row.accountId, row.id) }));
    },
    store: async (db, changes) => {
      const { credentialId: id, sealed } = oauthTokens;
      const from = listOf(changes);
      return (await db.update(oauthTokens).set(AFTER).from(from).where(isAt(id, sealed)).returning({ id }))
        .length;
    },
  },
  webhookSecrets('webhook secrets', 'sealed'),
  webhookSecrets('earlier webhook secrets', 'previousSealed'),
];

function webhookSecrets(what: string, field: 'sealed' | 'previousSealed'): Place {
  const { id, accountId, [field]: sealed } = webhooks;
  return {
    what,
    next: async (db, after, prefix, most) => {
      const rows = await db
        .select({ id, accountId, sealed })
        .from(webhooks)
        .where(and(gt(id, after), isNotNull(sealed), ne(sealed, ''), isStale(sealed, prefix)))
        .orderBy(asc(id))
        .limit(most);
      return rows.map((row) => ({ ...row, context: webhookContext(row.accountId, row.id) }));
    },
    store: async (db, changes) => {
      const set = { [field]: AFTER.sealed };
      const from = listOf(changes);
      return (await db.update(webhooks).set(set).from(from).where(isAt(id, sealed)).returning({ id })).length;
    },
  };
}

/** A null matches neither this nor its opposite, so such a row is not found. */
const isStale = (sealed: PgColumn, prefix: string): SQL => not(sql`starts_with(${sealed}, ${prefix})`);

const AFTER = { sealed: sql<string>`each.after` };

const listOf = (changes: readonly Change[]) =>
  sql`json_to_recordset(${JSON.stringify(changes)}::json) as each(id uuid, before text, after text)`;

/** Compare and set: the condition that nothing was written since the row was read. */
const isAt = (id: PgColumn, sealed: PgColumn): SQL => sql`${id} = each.id and ${sealed} = each.before`;
