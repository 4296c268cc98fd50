import { type EncryptionKeys, SealError, unseal } from '@presign/crypto';
import { mcpAuth } from '@presign/schema';
import { type Database, sqlState } from '@presign/schema/database';
import { credentialContext, credentials, oauthTokens } from '@presign/schema/tables';
import { and, asc, eq, gt, not, sql } from 'drizzle-orm';
import { handsInRefreshToken, originsOf } from '../issue/oauth-credential.ts';
import { FIRST_ID, type Resealed } from './reseal-rows.ts';

/**
 * Makes the fingerprints by which refresh tokens are found again anew, under the first key: without that, a token
 * handed in again would be taken for a new one as soon as the old key is gone.
 */
export async function resealOrigins(db: Database, keys: EncryptionKeys, batch: number): Promise<Resealed> {
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
      const anew = originOf(keys, row);
      const stored = anew !== undefined && (await store(db, row, anew));
      if (stored) resealed++;
      else left++;
    }
  }
}

type Row = {
  readonly id: string;
  readonly origin: string;
  readonly accountId: string;
  readonly sealed: string;
};

/** Undefined where the credential cannot be opened. */
function originOf(keys: EncryptionKeys, { id, accountId, sealed }: Row): string | undefined {
  try {
    const auth = mcpAuth.parse(JSON.parse(unseal(keys, sealed, credentialContext(accountId, id))));
    return handsInRefreshToken(auth) ? originsOf(keys, accountId, auth)[0] : undefined;
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}

/** SQLSTATE 23505, unique_violation: the same token was handed in where its old fingerprint could not be made. */
async function store(db: Database, { id, origin }: Row, anew: string): Promise<boolean> {
  const at = and(eq(oauthTokens.credentialId, id), eq(oauthTokens.origin, origin));
  try {
    await db.update(oauthTokens).set({ origin: anew }).where(at);
    return true;
  } catch (error) {
    if (sqlState(error) === '23505') return false;
    throw error;
  }
}
