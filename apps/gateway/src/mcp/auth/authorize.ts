import { SealError } from '@presign/crypto';
import { DEFAULT_KEY_HEADER, type McpAuth, type Refusal } from '@presign/schema';
import { isDatabaseOutage } from '@presign/service/database';
import { LRUCache } from 'lru-cache';
import { createExchange } from './exchange.ts';
import {
  type AuthorizerDeps,
  authFailed,
  createRefresh,
  type Fetched,
  isUsable,
  type OauthClient,
  sealTokens,
  type Tokens,
  unsealTokens,
} from './tokens.ts';

/** How a gateway authenticates to an MCP server. The issuer stores it encrypted. */
export type McpCredential = {
  readonly id: string;
  readonly accountId: string;
  readonly auth: McpAuth;
  /** The address of the server. */
  readonly serverUrl: string;
};

/** The headers and the parameter that authenticate a call to the server. */
export type Authorization = {
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** `name=value`, percent-encoded. */
  readonly query?: string;
  /** The access token in the header, if it was fetched. When the server refuses it, `authorize` can get another. */
  readonly token?: string;
};

export type Authorized = { readonly authorization: Authorization } | { readonly refusal: Refusal };

export type Authorizer = {
  /**
   * Returns what a call must carry. Fetches or refreshes an access token if it needs one.
   *
   * @param refused the access token that the server has just answered with 401. It is not returned again.
   * @returns refusals: `upstream_auth_failed` when there is no token, `database_unavailable` when a refresh needs
   *   Postgres and it does not answer, `internal_error` when stored tokens cannot be decrypted
   */
  readonly authorize: (credential: McpCredential, refused?: string) => Authorized | Promise<Authorized>;
};

/** Creates what authenticates one gateway to MCP servers. It remembers access tokens, so it is created once. */
export function createAuthorizer(deps: AuthorizerDeps): Authorizer {
  const accessTokens = createAccessTokens(deps);
  const fetched = async (
    client: OauthClient,
    refused: string | undefined,
    headers: Headers,
  ): Promise<Authorized> => {
    const access = await accessTokens.get(client, refused);
    if ('refusal' in access) return access;
    return { authorization: { ...authorized('Bearer', access.token, headers), token: access.token } };
  };
  return {
    authorize: (credential, refused) => {
      const { auth } = credential;
      switch (auth.type) {
        case 'none':
          return { authorization: { headers: [] } };
        case 'bearer':
          return { authorization: authorized(auth.scheme ?? 'Bearer', auth.token, auth.headers) };
        case 'api_key':
          return { authorization: apiKey(auth) };
        case 'oauth': {
          // The issuer got this token without a way to renew it, so its refusal is final.
          if (auth.access_token !== undefined)
            return { authorization: authorized('Bearer', auth.access_token, auth.headers) };
          const client = clientOf(credential, auth);
          return client ? fetched(client, refused, auth.headers) : NO_CLIENT;
        }
      }
    },
  };
}

const NO_CLIENT = authFailed('The credential names no token endpoint.');

function clientOf(
  { id, accountId, serverUrl }: McpCredential,
  { token_url: tokenUrl, client_id: clientId, ...auth }: Extract<McpAuth, { type: 'oauth' }>,
) {
  if (tokenUrl === undefined || clientId === undefined) return undefined;
  const { scope, audience, resource = resourceOf(serverUrl) } = auth;
  const parameters = {
    ...(scope === undefined ? {} : { scope }),
    ...(audience === undefined ? {} : { audience }),
    ...(resource === false ? {} : { resource }),
  };
  const secrets = { secret: auth.client_secret, refreshToken: auth.refresh_token };
  return { id, accountId, tokenUrl, clientId, ...secrets, parameters } satisfies OauthClient;
}

/** The canonical URL of a server (MCP 2026-07-28, authorization, "Canonical Server URI"; RFC 8707 §2 wants no query). */
function resourceOf(serverUrl: string): string {
  const { origin, pathname } = new URL(serverUrl);
  return pathname === '/' ? origin : origin + pathname;
}

type Headers = Readonly<Record<string, string>> | undefined;

/** RFC 9110 §11.6.2, RFC 6750 §2.1. */
const authorized = (scheme: string, token: string, headers: Headers): Authorization => ({
  headers: [['Authorization', `${scheme} ${token}`], ...Object.entries(headers ?? {})],
});

function apiKey({ key, header, query, headers }: Extract<McpAuth, { type: 'api_key' }>): Authorization {
  const more = Object.entries(headers ?? {});
  if (query === undefined) return { headers: [[header ?? DEFAULT_KEY_HEADER, key], ...more] };
  return { headers: more, query: `${encodeURIComponent(query)}=${encodeURIComponent(key)}` };
}

export type AccessToken = { readonly token: string } | { readonly refusal: Refusal };

export type AccessTokens = {
  /** Returns a client's access token, and never the one that was refused. */
  readonly get: (client: OauthClient, refused?: string) => Promise<AccessToken>;
  /** Forgets a token that was refused, so that the next call fetches another. */
  readonly forget: (client: OauthClient, refused: string) => void;
};

/** One fetch. All calls that need its token wait for it. */
type Flight = { readonly refused: string | undefined; readonly fetched: Promise<Fetched> };

const REMEMBERED = 10_000;
/**
 * The minimum time between two replacements of a refused token, even if the server refuses the new token too. Otherwise
 * a holder who can make the server answer 401 would cause a request to the authorization server with every call.
 */
const HOLD_OFF_MS = 10_000;

/**
 * The access tokens of one gateway. It caches them, sealed like all secrets in memory, until shortly before they expire. It fetches each
 * token once for all calls that need it.
 */
export function createAccessTokens(deps: AuthorizerDeps): AccessTokens {
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

  const get: AccessTokens['get'] = async (client, refused) => {
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
      // That fetch began before the refusal and returned the refused token. The next fetch takes the refusal into
      // account.
    }
  };

  const forget: AccessTokens['forget'] = (client, refused) => {
    if (recall(client)?.accessToken !== refused || isHeldOff(client)) return;
    remembered.delete(client.id);
    replaced.set(client.id, deps.now());
  };

  return { get, forget };
}

const REFUSED_AGAIN = authFailed('The server refused the access token, and no other one was given.');

function fetchRefusal({ log }: AuthorizerDeps, client: OauthClient, error: unknown): Refusal {
  if (isDatabaseOutage(error)) return { code: 'database_unavailable', retryAfterSeconds: 1 };
  // Only the error's kind is logged: a message may quote a secret.
  const kind = error instanceof SealError ? error.code : (error as Error).name;
  log.error({ credential: client.id, error: kind }, 'OAuth tokens could not be decrypted or fetched');
  return { code: 'internal_error' };
}
