import type { McpAuth, Refusal } from '@presign/schema';
import { createAccessTokens } from './access-tokens.ts';
import { type AuthorizerDeps, authFailed, type OauthClient } from './tokens.ts';

/** How a gateway authenticates to an MCP server. The issuer stores it encrypted. */
export type McpCredential = { readonly id: string; readonly accountId: string; readonly auth: McpAuth };

/** The header or parameter that authenticates a call to the server. */
export type Authorization = {
  readonly header?: readonly [name: string, value: string];
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
  readonly authorize: (credential: McpCredential, refused?: string) => Promise<Authorized>;
};

const DEFAULT_KEY_HEADER = 'X-API-Key';

/** Creates what authenticates one gateway to MCP servers. It remembers access tokens, so it is created once. */
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
          // The issuer got this token without a way to get another, so a refusal of it is final.
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
