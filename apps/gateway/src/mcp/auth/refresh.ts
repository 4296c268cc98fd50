import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '@presign/schema/database';
import { oauthTokens } from '@presign/schema/tables';
import { and, eq, isNull, lt, or, sql } from 'drizzle-orm';
import {
  type AuthorizerDeps,
  authFailed,
  type Fetched,
  isUsable,
  type OauthClient,
  sealTokens,
  type Tokens,
  unsealTokens,
} from './tokens.ts';

/** Requests tokens, with a refresh token or as the client itself. */
type Exchange = (client: OauthClient, refreshToken: string | undefined) => Promise<Fetched>;

/** Tokens from a refresh that Postgres has not stored yet. */
type Unstored = { readonly version: number; readonly sealed: string };

/** How long a call waits for another gateway's refresh. It is longer than a lease, in case that gateway dies. */
const PATIENCE_MS = 30_000;
const POLL_MS = 100;

/**
 * Refreshes tokens, coordinated between all gateways. A refresh token may work only once (RFC 9700 §4.14.2), so one gateway
 * refreshes under a lease, and the others use the tokens that it stores. Throws what Postgres throws.
 */
export function createRefresh(
  { db, encryptionKeys, now, log }: AuthorizerDeps,
  exchange: Exchange,
): (client: OauthClient, first: string, refused: string | undefined) => Promise<Fetched> {
  const unstored = new Map<string, Unstored>();

  /** False when there is nothing to store, or another gateway stored first. Forgets tokens only after Postgres answered. */
  const store = async (id: string): Promise<boolean> => {
    const late = unstored.get(id);
    if (!late) return false;
    const isFirst = await storeTokens(db, id, late.version, late.sealed);
    unstored.delete(id);
    return isFirst;
  };

  /** Undefined when another gateway stored first, so that its tokens are used. */
  const refresh = async (client: OauthClient, refreshToken: string, version: number, lease: Date) => {
    const fetched = await exchange(client, refreshToken);
    if ('refusal' in fetched) return (await endLease(db, client.id, lease)) ? fetched : undefined;
    // RFC 6749 §6: if there is no new refresh token, the old one stays valid.
    const tokens: Tokens = { refreshToken, ...fetched.tokens };
    unstored.set(client.id, { version, sealed: sealTokens(encryptionKeys, client, tokens) });
    return (await store(client.id)) ? { tokens } : undefined;
  };

  return async (client, first, refused) => {
    // Postgres may have been unreachable when the last refresh returned.
    await store(client.id);
    const giveUpAt = performance.now() + PATIENCE_MS;
    while (performance.now() < giveUpAt) {
      const row = await findTokens(db, client.id);
      if (!row) {
        log.error({ credential: client.id }, 'an OAuth refresh token has no row in oauth_tokens');
        return { refusal: { code: 'internal_error' } };
      }
      const newest = row.sealed === null ? undefined : unsealTokens(encryptionKeys, client, row.sealed);
      if (newest && isUsable(newest, now(), refused)) return { tokens: newest };
      const lease = await takeLease(db, client.id, row.version);
      const fetched = lease && (await refresh(client, newest?.refreshToken ?? first, row.version, lease));
      if (fetched) return fetched;
      await pause(POLL_MS);
    }
    log.warn({ credential: client.id }, 'another gateway did not finish refreshing an access token');
    return authFailed('The access token is being refreshed.');
  };
}

/** The newest tokens that a refresh token led to. */
type StoredTokens = {
  /** Null before the first refresh. */
  readonly sealed: string | null;
  readonly version: number;
};

/**
 * Longer than an exchange and one statement may take together, so that a lease runs out only when its gateway has died.
 */
const LEASE_SECONDS = 25;

async function findTokens(db: Database, credentialId: string): Promise<StoredTokens | undefined> {
  const { sealed, version } = oauthTokens;
  const [row] = await db
    .select({ sealed, version })
    .from(oauthTokens)
    .where(eq(oauthTokens.credentialId, credentialId));
  return row;
}

/** Leases the right to refresh tokens of this version. Undefined when another gateway has it, or has refreshed. */
async function takeLease(db: Database, credentialId: string, version: number): Promise<Date | undefined> {
  const { leasedUntil } = oauthTokens;
  const [row] = await db
    .update(oauthTokens)
    // Postgres' clock, because all gateways share it. Milliseconds, because a Date holds no less.
    .set({ leasedUntil: sql`date_trunc('milliseconds', now()) + make_interval(secs => ${LEASE_SECONDS})` })
    .where(and(isAt(credentialId, version), or(isNull(leasedUntil), lt(leasedUntil, sql`now()`))))
    .returning({ leasedUntil });
  return row?.leasedUntil ?? undefined;
}

/** Stores the tokens of a refresh and ends its lease. False when newer tokens are stored already. */
async function storeTokens(
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

/** Ends a lease without new tokens. False when another gateway has the lease, or has stored tokens. */
async function endLease(db: Database, credentialId: string, lease: Date): Promise<boolean> {
  const ended = await db
    .update(oauthTokens)
    .set({ leasedUntil: null })
    .where(and(eq(oauthTokens.credentialId, credentialId), eq(oauthTokens.leasedUntil, lease)))
    .returning({ version: oauthTokens.version });
  return ended.length > 0;
}

const isAt = (credentialId: string, version: number) =>
  and(eq(oauthTokens.credentialId, credentialId), eq(oauthTokens.version, version));
