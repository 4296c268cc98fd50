import { SealError } from '@presign/crypto';
import type { Refusal } from '@presign/schema';
import { isDatabaseOutage } from '@presign/schema/database';
import { LRUCache } from 'lru-cache';
import { createExchange } from './exchange.ts';
import { createRefresh } from './refresh.ts';
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

export type AccessToken = { readonly token: string } | { readonly refusal: Refusal };

/** One fetch. All calls that need its token wait for it. */
type Flight = { readonly refused: string | undefined; readonly fetched: Promise<Fetched> };

const REMEMBERED = 10_000;
/**
 * How long a token that replaced a refused one is not replaced again, even if the server refuses it, too. Otherwise a
 * holder who can make the server answer 401 would cause a request to the authorization server with every call.
 */
const HOLD_OFF_MS = 10_000;

/**
 * The access tokens of one gateway. It remembers them, sealed as all secrets in memory, until shortly before they expire,
 * and fetches each token once for all calls that need it.
 */
export function createAccessTokens(
  deps: AuthorizerDeps,
): (client: OauthClient, refused?: string) => Promise<AccessToken> {
  const exchange = createExchange(deps);
  const refresh = createRefresh(deps, exchange);
  const remembered = new LRUCache<string, string>({ max: REMEMBERED });
  /** When a token last replaced a refused one, by credential. */
  const replaced = new LRUCache<string, number>({ max: REMEMBERED });
  const flights = new Map<string, Flight>();

  const recall = (client: OauthClient): Tokens | undefined => {
    const sealed = remembered.get(client.id);
    const tokens = sealed === undefined ? undefined : unsealTokens(deps.encryptionKeys, client, sealed);
    return tokens && isUsable(tokens, deps.now(), undefined) ? tokens : undefined;
  };
  const isHeldOff = (client: OauthClient) => deps.now() - (replaced.get(client.id) ?? 0) < HOLD_OFF_MS;

  const fetchTokens = async (client: OauthClient, refused: string | undefined): Promise<Fetched> => {
    try {
      const { refreshToken } = client;
      const fetched = await (refreshToken === undefined
        ? exchange(client, undefined)
        : refresh(client, refreshToken, refused));
      if ('refusal' in fetched || fetched.tokens.accessToken === refused) return fetched;
      remembered.set(client.id, sealTokens(deps.encryptionKeys, client, fetched.tokens));
      if (refused !== undefined) replaced.set(client.id, deps.now());
      return fetched;
    } catch (error) {
      return { refusal: fetchRefusal(deps, client, error) };
    }
  };

  const startFlight = (client: OauthClient, refused: string | undefined): Flight => {
    const fetched = fetchTokens(client, refused).finally(() => flights.delete(client.id));
    const flight = { refused, fetched };
    flights.set(client.id, flight);
    return flight;
  };

  return async (client, refused) => {
    for (;;) {
      const known = recall(client);
      if (known && known.accessToken !== refused) return { token: known.accessToken };
      if (known && isHeldOff(client)) return REFUSED_AGAIN;
      remembered.delete(client.id);
      const flight = flights.get(client.id) ?? startFlight(client, refused);
      const fetched = await flight.fetched;
      if ('refusal' in fetched) return fetched;
      if (fetched.tokens.accessToken !== refused) return { token: fetched.tokens.accessToken };
      if (flight.refused === refused) return REFUSED_AGAIN;
      // That fetch began before the refusal and returned the refused token. The next one knows the refusal.
    }
  };
}

const REFUSED_AGAIN = authFailed('The server refused the access token, and no other one was given.');

function fetchRefusal({ log }: AuthorizerDeps, client: OauthClient, error: unknown): Refusal {
  if (isDatabaseOutage(error)) return { code: 'database_unavailable', retryAfterSeconds: 1 };
  // Only the error's kind is logged: a message may quote a secret.
  const kind = error instanceof SealError ? error.code : (error as Error).name;
  log.error({ credential: client.id, error: kind }, 'OAuth tokens could not be decrypted or fetched');
  return { code: 'internal_error' };
}
