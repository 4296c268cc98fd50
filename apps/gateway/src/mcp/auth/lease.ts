import type { Database } from '@presign/schema/database';
import { oauthTokens } from '@presign/schema/tables';
import { and, eq, isNull, lt, or, sql } from 'drizzle-orm';

/** The newest tokens of a refresh token's chain. */
export type StoredTokens = {
  /** Null before the first refresh. */
  readonly sealed: string | null;
  readonly version: number;
};

/**
 * Longer than a request to the token endpoint and one statement may take together: a lease that runs out
 * belonged to a gateway that died.
 */
const LEASE_SECONDS = 25;

export async function findTokens(db: Database, credentialId: string): Promise<StoredTokens | undefined> {
  const { sealed, version } = oauthTokens;
  const [row] = await db
    .select({ sealed, version })
    .from(oauthTokens)
    .where(eq(oauthTokens.credentialId, credentialId));
  return row;
}

/** Takes the right to refresh tokens of this version; undefined when another gateway has it, or has refreshed. */
export async function takeLease(
  db: Database,
  credentialId: string,
  version: number,
): Promise<Date | undefined> {
  const { leasedUntil } = oauthTokens;
  const [row] = await db
    .update(oauthTokens)
    // By Postgres' clock, which all gateways share; in milliseconds, which is all that a Date keeps.
    .set({ leasedUntil: sql`date_trunc('milliseconds', now()) + make_interval(secs => ${LEASE_SECONDS})` })
    .where(and(isAt(credentialId, version), or(isNull(leasedUntil), lt(leasedUntil, sql`now()`))))
    .returning({ leasedUntil });
  return row?.leasedUntil ?? undefined;
}

/** Stores what a refresh of this version gave, which ends the lease; false when newer tokens are there already. */
export async function storeTokens(
  db: Database,
  credentialId: string,
  version: number,
  sealed: string,
): Promise<boolean> {
  const stored = await db
    .update(oauthTokens)
    .set({ sealed, version: version + 1, leasedUntil: null })
    .where(isAt(credentialId, version))
    .returning({ version: oauthTokens.version });
  return stored.length > 0;
}

/** Gives the right back without new tokens; false when it is another gateway's by now, or tokens are stored. */
export async function endLease(db: Database, credentialId: string, lease: Date): Promise<boolean> {
  const ended = await db
    .update(oauthTokens)
    .set({ leasedUntil: null })
    .where(and(eq(oauthTokens.credentialId, credentialId), eq(oauthTokens.leasedUntil, lease)))
    .returning({ version: oauthTokens.version });
  return ended.length > 0;
}

const isAt = (credentialId: string, version: number) =>
  and(eq(oauthTokens.credentialId, credentialId), eq(oauthTokens.version, version));
