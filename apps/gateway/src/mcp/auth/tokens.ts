import { setTimeout as pause } from 'node:timers/promises';
import { type EncryptionKeys, seal, unseal } from '@presign/crypto';
import type { Refusal } from '@presign/schema';
import { oauthTokens, oauthTokensContext } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { and, eq, isNull, lt, or, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';

/** The parts of the gateway that authentication to MCP servers needs. */
export type AuthorizerDeps = {
  readonly db: Database;
  readonly dispatcher: Dispatcher;
  readonly encryptionKeys: EncryptionKeys;
  readonly now: () => number;
  readonly log: Logger;
};

/** A client at its authorization server. With a refresh token it acts for the user who gave consent. */
export type OauthClient = {
  /** The credential's id. */
  readonly id: string;
  readonly accountId: string;
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly secret: string | undefined;
  /** The refresh token that the issuer got. */
  readonly refreshToken: string | undefined;
  /** Signs the assertion that replaces the client's secret (RFC 7523 §2.1). */
  readonly assertion?: () => string;
  /** Further parameters of every request to the token endpoint. */
  readonly parameters: { readonly scope?: string; readonly audience?: string; readonly resource?: string };
};

/** The tokens that a token endpoint returned. */
export type Tokens = {
  readonly accessToken: string;
  /** Unix milliseconds, shortly before the access token expires. */
  readonly usableUntilMs: number;
  /** For the next refresh. */
  readonly refreshToken?: string;
};

export type Fetched =
  | { readonly tokens: Tokens }
  | {
      readonly refusal: Refusal;
      /** A refresh token of an answer that has no usable access token. It has replaced the one that was sent. */
      readonly refreshToken?: string;
    };

/** The refusal when there is no access token. The message must not quote the authorization server. */
export const authFailed = (message: string): { readonly refusal: Refusal } => ({
  refusal: { code: 'upstream_auth_failed', message },
});

/** Longer lifetimes are cut to this, because the largest numbers cannot be stored. */
const LONGEST_LIFE_MS = 365 * 86_400_000;
const LONGEST_LEEWAY_MS = 60_000;
const LEEWAY_SHARE = 0.1;

/** How long a token without `expires_in` is used, unless the server refuses it earlier. RFC 6749 §5.1 sets no value. */
const UNSTATED_LIFE_MS = 3_600_000;

/**
 * Until when an access token is used, in Unix milliseconds: a minute before it expires, or a tenth of its lifetime if that is less, so that
 * it does not expire in transit.
 * @param expiresIn in seconds, from the token endpoint
 */
export function usableUntil(askedMs: number, expiresIn: number | undefined): number {
  if (expiresIn === undefined) return askedMs + UNSTATED_LIFE_MS;
  const lifeMs = Math.min(expiresIn * 1000, LONGEST_LIFE_MS);
  return askedMs + lifeMs - Math.min(LONGEST_LEEWAY_MS, lifeMs * LEEWAY_SHARE);
}

/** Whether an access token is neither refused nor about to expire. */
export const isUsable = (tokens: Tokens, nowMs: number, refused: string | undefined): boolean =>
  nowMs < tokens.usableUntilMs && tokens.accessToken !== refused;

/** Seals tokens for Postgres or memory. */
export const sealTokens = (keys: EncryptionKeys, client: OauthClient, tokens: Tokens): string =>
  seal(keys, JSON.stringify(tokens), context(client));

/** @throws {SealError} like `unseal` in the crypto package */
export const unsealTokens = (keys: EncryptionKeys, client: OauthClient, sealed: string): Tokens =>
  JSON.parse(unseal(keys, sealed, context(client))) as Tokens;

const context = ({ accountId, id }: OauthClient) => oauthTokensContext(accountId, id);

/** Requests tokens, with a refresh token or as the client itself. */
type Exchange = (client: OauthClient, refreshToken: string | undefined) => Promise<Fetched>;

/** Tokens from a refresh that Postgres has not stored yet. */
type Unstored = { readonly version: number; readonly sealed: string };

/** How long a call waits for another gateway's refresh. It is longer than a lease, because that gateway may die. */
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
    // RFC 6749 §6: if there is no new refresh token, the old one stays valid.
    const tokens = 'tokens' in fetched ? { refreshToken, ...fetched.tokens } : unusable(fetched.refreshToken);
    if (!tokens) return (await endLease(db, client.id, lease)) ? fetched : undefined;
    unstored.set(client.id, { version, sealed: sealTokens(encryptionKeys, client, tokens) });
    if (!(await store(client.id))) return undefined;
    return 'tokens' in fetched ? { tokens } : fetched;
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

/** Tokens of which only the next refresh token is usable. */
const unusable = (refreshToken: string | undefined): Tokens | undefined =>
  refreshToken === undefined ? undefined : { accessToken: '', usableUntilMs: 0, refreshToken };

/** The newest tokens that a refresh token led to. */
type StoredTokens = {
  /** Null before the first refresh. */
  readonly sealed: string | null;
  readonly version: number;
};

/** Longer than an exchange and one statement may take together, so that a lease expires only if its gateway has died. */
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
    // Uses Postgres' clock, because all gateways share it. Milliseconds are the precision of a Date.
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
