import { setTimeout as pause } from 'node:timers/promises';
import type { AuthorizerDeps } from './authorize.ts';
import { endLease, findTokens, storeTokens, takeLease } from './lease.ts';
import {
  authFailed,
  type Fetched,
  isUsable,
  type OauthClient,
  sealTokens,
  type Tokens,
  unsealTokens,
} from './tokens.ts';

/** A request to a token endpoint, with a refresh token or as the client itself. */
type Exchange = (client: OauthClient, refreshToken: string | undefined) => Promise<Fetched>;

/** Tokens that a refresh gave and Postgres does not have yet. */
type Unstored = { readonly version: number; readonly sealed: string };

/** How long a call waits for another gateway's refresh: longer than a lease, so that one death is outlived. */
const PATIENCE_MS = 30_000;
const POLL_MS = 100;

/**
 * Refreshes over all gateways: each refresh token may be good once only (RFC 9700 §4.14.2), so one gateway
 * refreshes under a lease, and the others use what it stored. Throws what Postgres throws.
 */
export function createChains(
  { db, encryptionKeys, now, log }: AuthorizerDeps,
  exchange: Exchange,
): (client: OauthClient, first: string, refused: string | undefined) => Promise<Fetched> {
  const unstored = new Map<string, Unstored>();

  /** False when there is nothing to store, or another gateway was first. Nothing is forgotten unless stored. */
  const store = async (id: string): Promise<boolean> => {
    const late = unstored.get(id);
    if (!late) return false;
    const isFirst = await storeTokens(db, id, late.version, late.sealed);
    unstored.delete(id);
    return isFirst;
  };

  /** Undefined when another gateway was first, whose tokens are then to be used. */
  const refresh = async (client: OauthClient, refreshToken: string, version: number, lease: Date) => {
    const fetched = await exchange(client, refreshToken);
    if ('refusal' in fetched) return (await endLease(db, client.id, lease)) ? fetched : undefined;
    // RFC 6749 §6: without a new one the old one goes on being good.
    const tokens: Tokens = { refreshToken, ...fetched.tokens };
    unstored.set(client.id, { version, sealed: sealTokens(encryptionKeys, client, tokens) });
    return (await store(client.id)) ? { tokens } : undefined;
  };

  return async (client, first, refused) => {
    // First of all: Postgres may have been away when the last refresh came back.
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
