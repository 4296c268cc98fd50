import { SealError } from '@presign/crypto';
import type { Refusal } from '@presign/schema';
import { isDatabaseOutage } from '@presign/schema/database';
import { LRUCache } from 'lru-cache';
import type { AuthorizerDeps } from './authorize.ts';
import { createExchange } from './exchange.ts';
import { createChains } from './refresh.ts';
import {
  authFailed,
  type Fetched,
  isUsable,
  type OauthClient,
  sealTokens,
  type Tokens,
  unsealTokens,
} from './tokens.ts';

export type AccessToken = { readonly token: string } | { readonly refusal: Refusal };

/** One fetch, which all calls that need its token wait for. */
type Flight = { readonly refused: string | undefined; readonly fetched: Promise<Fetched> };

const REMEMBERED = 10_000;
/**
 * A token that came in place of a refused one, and is refused as well, is not replaced so soon: whoever can bring the
 * server to say 401 would have the authorization server asked at every call.
 */
const HOLD_OFF_MS = 10_000;

/**
 * The access tokens of one gateway: remembered (sealed, as all secrets in memory) until shortly before they
 * expire, and fetched once for however many calls need them.
 */
export function createAccessTokens(
  deps: AuthorizerDeps,
): (client: OauthClient, refused?: string) => Promise<AccessToken> {
  const exchange = createExchange(deps);
  const followChain = createChains(deps, exchange);
  const remembered = new LRUCache<string, string>({ max: REMEMBERED });
  /** When a token was last fetched because the one before had been refused. */
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
        : followChain(client, refreshToken, refused));
      if ('refusal' in fetched || fetched.tokens.accessToken === refused) return fetched;
      remembered.set(client.id, sealTokens(deps.encryptionKeys, client, fetched.tokens));
      if (refused !== undefined) replaced.set(client.id, deps.now());
      return fetched;
    } catch (error) {
      return { refusal: refusalOf(deps, client, error) };
    }
  };

  const takeOff = (client: OauthClient, refused: string | undefined): Flight => {
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
      const flight = flights.get(client.id) ?? takeOff(client, refused);
      const fetched = await flight.fetched;
      if ('refusal' in fetched) return fetched;
      if (fetched.tokens.accessToken !== refused) return { token: fetched.tokens.accessToken };
      if (flight.refused === refused) return REFUSED_AGAIN;
      // A flight that knew nothing of the refusal came back with what was refused: the next one knows.
    }
  };
}

const REFUSED_AGAIN = authFailed('The server refused the access token, and no other one was given.');

function refusalOf({ log }: AuthorizerDeps, client: OauthClient, error: unknown): Refusal {
  if (isDatabaseOutage(error)) return { code: 'database_unavailable', retryAfterSeconds: 1 };
  // Only what kind it is: a message may quote what must stay secret.
  const kind = error instanceof SealError ? error.code : (error as Error).name;
  log.error({ credential: client.id, error: kind }, 'OAuth tokens could not be opened or fetched');
  return { code: 'internal_error' };
}
