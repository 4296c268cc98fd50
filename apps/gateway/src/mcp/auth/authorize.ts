import type { McpAuth, Refusal } from '@presign/schema';
import type { GatewayDeps } from '../../app.ts';
import { createAccessTokens } from './access-tokens.ts';
import { authFailed, type OauthClient } from './tokens.ts';

/** How a gateway authenticates to an MCP server, as kept sealed by the issuer. */
export type McpCredential = { readonly id: string; readonly accountId: string; readonly auth: McpAuth };

/** What a call to the server carries. */
export type Authorization = {
  readonly header?: readonly [name: string, value: string];
  /** `name=value`, encoded for a query. */
  readonly query?: string;
  /** The access token that the header carries, if it was fetched: when the server refuses it, ask again. */
  readonly token?: string;
};

export type Authorized = { readonly authorization: Authorization } | { readonly refusal: Refusal };

export type Authorizer = {
  /**
   * Says what a call has to carry; fetches or refreshes an access token where one is needed.
   *
   * @param refused the access token that the server just answered 401 to: it is not handed out again
   * @returns refusals: `upstream_auth_failed` when no token is to be had, `database_unavailable` when Postgres
   *   is needed for a refresh and does not answer, `internal_error` when what is stored cannot be opened
   */
  readonly authorize: (credential: McpCredential, refused?: string) => Promise<Authorized>;
};

export type AuthorizerDeps = Pick<GatewayDeps, 'db' | 'dispatcher' | 'encryptionKeys' | 'now' | 'log'>;

const DEFAULT_KEY_HEADER = 'X-API-Key';

/** How one gateway authenticates to MCP servers. It remembers access tokens, so it is made once. */
export function createAuthorizer(deps: AuthorizerDeps): Authorizer {
  const accessTokens = createAccessTokens(deps);
  return {
    authorize: async ({ id, accountId, auth }, refused) => {
      switch (auth.type) {
        case 'none':
          return { authorization: {} };
        case 'bearer':
          return { authorization: bearer(auth.token) };
        case 'api_key':
          return { authorization: apiKey(auth) };
        case 'oauth': {
          // Handed in without a way to get another: nothing is gained by asking again.
          if (auth.access_token !== undefined) return { authorization: bearer(auth.access_token) };
          const client = clientOf(id, accountId, auth);
          if (!client) return NO_CLIENT;
          const access = await accessTokens(client, refused);
          if ('refusal' in access) return access;
          return { authorization: { ...bearer(access.token), token: access.token } };
        }
      }
    },
  };
}

const NO_CLIENT = authFailed('The credential names no token endpoint.');

function clientOf(id: string, accountId: string, auth: Extract<McpAuth, { type: 'oauth' }>) {
  const { token_url: tokenUrl, client_id: clientId, client_secret, refresh_token, scope, audience } = auth;
  if (tokenUrl === undefined || clientId === undefined) return undefined;
  const parameters = {
    ...(scope === undefined ? {} : { scope }),
    ...(audience === undefined ? {} : { audience }),
  };
  const secrets = { secret: client_secret, refreshToken: refresh_token };
  return { id, accountId, tokenUrl, clientId, ...secrets, parameters } satisfies OauthClient;
}

/** RFC 6750 §2.1. */
const bearer = (token: string): Authorization => ({ header: ['Authorization', `Bearer ${token}`] });

function apiKey({ key, header, query }: Extract<McpAuth, { type: 'api_key' }>): Authorization {
  if (query === undefined) return { header: [header ?? DEFAULT_KEY_HEADER, key] };
  return { query: `${encodeURIComponent(query)}=${encodeURIComponent(key)}` };
}
