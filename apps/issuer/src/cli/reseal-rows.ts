import { type EncryptionKeys, reseal, SealError } from '@presign/crypto';
import type { Database } from '@presign/schema/database';
import { credentialContext, credentials, oauthTokens, oauthTokensContext } from '@presign/schema/tables';
import { webhookContext, webhooks } from '@presign/schema/webhook-tables';
import { and, asc, eq, gt, isNotNull, ne, not, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';

/** How many values were resealed, and how many could not be. */
export type Resealed = { readonly resealed: number; readonly left: number };

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
export async function resealPlace(
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
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';

function changeOf(keys: EncryptionKeys, { id, sealed, context }: SealedRow): Change[] {
  try {
    return [{ id, before: sealed ?? '', after: reseal(keys, sealed ?? '', context) }];
  } catch (error) {
    if (error instanceof SealError) return [];
    throw error;
  }
}

/** All places of sealed values in Postgres. */
export const PLACES: readonly Place[] = [
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
        .where(and(gt(id, after), isNotNull(sealed), isStale(sealed, prefix)))
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
