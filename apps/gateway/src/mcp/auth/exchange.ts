import { BlockedAddressError } from '@presign/outbound';
import { LRUCache } from 'lru-cache';
import * as oauth from 'oauth4webapi';
import type { AuthorizerDeps } from './authorize.ts';
import { tokenEndpointFetch } from './fetch.ts';
import { authFailed, type Fetched, type OauthClient, type Tokens, usableUntil } from './tokens.ts';

/** For all requests of one exchange together; a lease is longer. */
const EXCHANGE_TIMEOUT_MS = 10_000;
const REMEMBERED = 10_000;

const WAYS = { basic: oauth.ClientSecretBasic, body: oauth.ClientSecretPost } as const;

/** Why a request to the token endpoint gave no token. */
type Failure = {
  readonly error: unknown;
  readonly status: number | undefined;
  /** One of `ERROR_CODES`. */
  readonly oauthError: string | undefined;
};

/**
 * Asks token endpoints, for a refresh (RFC 6749 §6) or for the client itself (§4.4).
 *
 * The secret goes as HTTP Basic, which every server that gives out secrets has to take (§2.3.1); to a server that
 * does not know the client then, in the body. Which one worked is remembered.
 */
export function createExchange(
  deps: Pick<AuthorizerDeps, 'dispatcher' | 'now' | 'log'>,
): (client: OauthClient, refreshToken: string | undefined) => Promise<Fetched> {
  const inBody = new LRUCache<string, true>({ max: REMEMBERED });
  return async (client, refreshToken) => {
    const { secret, id } = client;
    const signal = AbortSignal.timeout(EXCHANGE_TIMEOUT_MS);
    const ask = (auth: oauth.ClientAuth) => askOnce(deps, client, auth, refreshToken, signal);
    if (secret === undefined) return fetchedOf(deps, client, await ask(oauth.None()));
    const usual = inBody.has(id) ? 'body' : 'basic';
    const answer = await ask(WAYS[usual](secret));
    if ('tokens' in answer || !isClientRefused(answer)) return fetchedOf(deps, client, answer);
    const other = usual === 'body' ? 'basic' : 'body';
    const again = await ask(WAYS[other](secret));
    if ('tokens' in again) other === 'body' ? inBody.set(id, true) : inBody.delete(id);
    return fetchedOf(deps, client, again);
  };
}

async function askOnce(
  { dispatcher, now }: Pick<AuthorizerDeps, 'dispatcher' | 'now'>,
  client: OauthClient,
  auth: oauth.ClientAuth,
  refreshToken: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly tokens: Tokens } | Failure> {
  const { tokenUrl, clientId, parameters } = client;
  // Its issuer is not known, nor needed: ID tokens are left aside.
  const server: oauth.AuthorizationServer = { issuer: tokenUrl, token_endpoint: tokenUrl };
  const named = { client_id: clientId };
  const { send, seen } = tokenEndpointFetch(dispatcher);
  // The address guard decides what is reached; http is for servers of one's own.
  const options = { [oauth.customFetch]: send, [oauth.allowInsecureRequests]: true, signal };
  const askedMs = now();
  try {
    const response =
      refreshToken === undefined
        ? await oauth.clientCredentialsGrantRequest(server, named, auth, parameters, options)
        : await oauth.refreshTokenGrantRequest(server, named, auth, refreshToken, {
            ...options,
            additionalParameters: parameters,
          });
    return {
      tokens: tokensOf(await oauth.processGenericTokenEndpointResponse(server, named, response), askedMs),
    };
  } catch (error) {
    const told = error instanceof oauth.ResponseBodyError ? error.error : undefined;
    const oauthError = told !== undefined && ERROR_CODES.has(told) ? told : undefined;
    return { error, status: seen.status, oauthError };
  }
}

/** What may stand in a header (RFC 6750 §2.1, generously). */
const SENDABLE = /^[\x21-\x7e]+$/;

function tokensOf(answer: oauth.TokenEndpointResponse, askedMs: number): Tokens {
  const { access_token: accessToken, token_type, expires_in, refresh_token: refreshToken } = answer;
  // Others prove possession of a key, which is not here.
  if (token_type !== 'bearer' || !SENDABLE.test(accessToken)) throw new UnusableTokenError();
  const usableUntilMs = usableUntil(askedMs, expires_in);
  return { accessToken, usableUntilMs, ...(refreshToken === undefined ? {} : { refreshToken }) };
}

/** A token endpoint gave a token that cannot be sent as a bearer token. */
class UnusableTokenError extends Error {
  override readonly name = 'UnusableTokenError';
}

/** RFC 6749 §5.2: a client that came with HTTP Basic must hear 401, others may. */
const isClientRefused = ({ oauthError, status }: Failure) =>
  oauthError === 'invalid_client' || (oauthError === undefined && status === 401);

function fetchedOf(
  { log }: Pick<AuthorizerDeps, 'log'>,
  client: OauthClient,
  answer: { readonly tokens: Tokens } | Failure,
): Fetched {
  if ('tokens' in answer) return answer;
  const { error, status, oauthError } = answer;
  const hint = causes(error).some((each) => each instanceof BlockedAddressError) ? BLOCKED : undefined;
  const host = new URL(client.tokenUrl).host;
  const line = { credential: client.id, host, status, oauth_error: oauthError, error: kindOf(error), hint };
  log.warn(line, 'no access token');
  const told = oauthError === undefined ? '' : ` (${oauthError})`;
  return authFailed(`The authorization server gave no access token${told}.`);
}

const BLOCKED = 'the address is not public: only ALLOW_PRIVATE_UPSTREAMS=true lets it be called';

/** What went wrong, in a word of the library, undici or the system: messages may quote what was sent or answered. */
function kindOf(error: unknown): string {
  const codes = causes(error).map((each) =>
    'code' in each && typeof each.code === 'string' ? each.code : each.name,
  );
  return codes.at(-1) ?? 'unknown';
}

function causes(error: unknown): readonly Error[] {
  const found: Error[] = [];
  for (let each = error; each instanceof Error; each = each.cause) found.push(each);
  return found;
}

/** RFC 6749 §5.2 and §4.1.2.1, RFC 8707 §2: codes that say nothing but what they are. */
const ERROR_CODES: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'access_denied',
  'server_error',
  'temporarily_unavailable',
]);
