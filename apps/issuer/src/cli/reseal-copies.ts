import { type EncryptionKeys, SealError, sealedWith } from '@presign/crypto';
import { type CredentialCopy, type RedisClient, resealCopy, scanCredentials } from '@presign/limits';
import type { Database } from '@presign/schema/database';
import { credentials } from '@presign/schema/tables';
import { inArray } from 'drizzle-orm';
import type { Resealed } from './reseal-rows.ts';

/**
 * Puts what Postgres has in the place of every copy in Redis that another key has sealed. Wants Postgres to be
 * sealed anew, and no gateway to be about to write what it read there before.
 */
export async function resealCopies(
  db: Database,
  redis: RedisClient,
  keys: EncryptionKeys,
): Promise<Resealed> {
  let [resealed, left] = [0, 0];
  for await (const copies of scanCredentials(redis)) {
    const stale = copies.filter((copy) => !isSealedWithFirst(keys, copy));
    const known = await readVersions(db, stale);
    for (const { partition, id } of stale) {
      const version = known.get(id);
      // Deleted meanwhile, or another installation's: nothing here opens it.
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
