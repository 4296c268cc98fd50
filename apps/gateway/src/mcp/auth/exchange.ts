import { BlockedAddressError } from '@presign/outbound';
import { isJsonObject, parseJson } from '@presign/schema';
import { LRUCache } from 'lru-cache';
import * as oauth from 'oauth4webapi';
import { type Dispatcher, fetch } from 'undici';
import { BLOCKED_HINT } from '../../http/forward.ts';
import {
  type AuthorizerDeps,
  authFailed,
  type Fetched,
  type OauthClient,
  type Tokens,
  usableUntil,
} from './tokens.ts';

/** The time limit for all requests of one exchange together. A lease lasts longer. */
const EXCHANGE_TIMEOUT_MS = 10_000;
const REMEMBERED = 10_000;

/** RFC 7523 §2.1: the assertion names the client, and the request carries nothing else of it. */
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const BY_ASSERTION: oauth.ClientAuth = () => {};

const WAYS = { basic: oauth.ClientSecretBasic, body: oauth.ClientSecretPost } as const;

/** Why a request to the token endpoint gave no token. */
type Failure = {
  readonly error: unknown;
  readonly status: number | undefined;
  /** One of `ERROR_CODES`. */
  readonly oauthError: string | undefined;
  /** The refresh token of the answer. */
  readonly refreshToken: string | undefined;
};

/**
 * Requests tokens from token endpoints, with a refresh token (RFC 6749 §6) or as the client itself (§4.4).
 *
 * It sends the client's secret as HTTP Basic, which every server that issues secrets must accept (§2.3.1). If the server does not recognise
 * the client, or requires the secret in the body, it sends the secret in the body. It remembers which way worked.
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
    if ('tokens' in answer || !isClientRefused(answer, usual)) return fetchedOf(deps, client, answer);
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
  // The library requires an issuer to check ID tokens, which are not read here.
  const server: oauth.AuthorizationServer = { issuer: tokenUrl, token_endpoint: tokenUrl };
  const named = { client_id: clientId };
  const { send, seen } = tokenEndpointFetch(dispatcher);
  // The address guard decides which addresses are allowed. http is allowed for private servers.
  const options = { [oauth.customFetch]: send, [oauth.allowInsecureRequests]: true, signal };
  const askedMs = now();
  try {
    const ask = (): Promise<Response> => {
      if (client.assertion) {
        const signed = { ...parameters, assertion: client.assertion() };
        return oauth.genericTokenEndpointRequest(server, named, BY_ASSERTION, JWT_BEARER, signed, options);
      }
      if (refreshToken === undefined)
        return oauth.clientCredentialsGrantRequest(server, named, auth, parameters, options);
      const more = { ...options, additionalParameters: parameters };
      return oauth.refreshTokenGrantRequest(server, named, auth, refreshToken, more);
    };
    const response = await ask();
    return {
      tokens: tokensOf(await oauth.processGenericTokenEndpointResponse(server, named, response), askedMs),
    };
  } catch (error) {
    const code = error instanceof oauth.ResponseBodyError ? error.error : undefined;
    const oauthError = code !== undefined && ERROR_CODES.has(code) ? code : undefined;
    return { error, status: seen.status, oauthError, refreshToken: seen.refreshToken };
  }
}

/** The longest answer of a token endpoint that is read. */
const ANSWER_MAX_BYTES = 65_536;

/** A token endpoint's answer exceeds `ANSWER_MAX_BYTES`. */
class AnswerTooLargeError extends Error {
  override readonly name = 'AnswerTooLargeError';
}

/**
 * The `fetch` for one request of `oauth4webapi`. It uses the guarded dispatcher, follows no redirect (the library requests none), and reads
 * the answer up to a bound. `seen` has the answer's refresh token and its status, even if reading the body fails.
 */
function tokenEndpointFetch(dispatcher: Dispatcher) {
  const seen: { status?: number; refreshToken?: string } = {};
  const send = async (
    url: string,
    options: oauth.CustomFetchOptions<'POST', URLSearchParams>,
  ): Promise<Response> => {
    const { method, redirect, headers, body, signal } = options;
    const answer = await fetch(url, {
      method,
      redirect,
      headers,
      body: body.toString(),
      signal: signal ?? null,
      dispatcher,
    });
    seen.status = answer.status;
    const text = await readBounded(answer.body);
    const { status, body: read, refreshToken } = readAnswer(text, answer.status);
    if (refreshToken !== undefined) seen.refreshToken = refreshToken;
    // The challenge header is omitted, because with it the library would not read the error in the body.
    const type = { 'content-type': answer.headers.get('content-type') ?? '' };
    return new Response(read, { status, headers: type });
  };
  return { send, seen };
}

async function readBounded(body: AsyncIterable<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > ANSWER_MAX_BYTES) throw new AnswerTooLargeError();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Reads an answer as servers write it. A `null` member counts as absent. Tokens are a success with any status, because Supabase answers 201
 * (python-sdk 1502). The ID token is dropped: it identifies the user, which is not needed and cannot be checked here.
 */
function readAnswer(text: string, status: number) {
  const answer = parseJson(text);
  if (!isJsonObject(answer)) return { status, body: text === '' ? null : text, refreshToken: undefined };
  const { id_token: _, ...rest } = answer;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null));
  const isSuccess = given['error'] === undefined;
  const refreshToken = isSuccess ? given['refresh_token'] : undefined;
  return {
    status: isSuccess && typeof given['access_token'] === 'string' ? 200 : status,
    body: JSON.stringify(given),
    refreshToken: typeof refreshToken === 'string' && refreshToken !== '' ? refreshToken : undefined,
  };
}

/** Characters that a header can carry. RFC 6750 §2.1 allows fewer. */
const SENDABLE = /^[\x21-\x7e]+$/;

function tokensOf(answer: oauth.TokenEndpointResponse, askedMs: number): Tokens {
  const { access_token: accessToken, token_type, expires_in, refresh_token: refreshToken } = answer;
  // Other token types require proof of a key that the gateway does not have.
  if (token_type !== 'bearer' || !SENDABLE.test(accessToken)) throw new UnusableTokenError();
  const usableUntilMs = usableUntil(askedMs, expires_in);
  return { accessToken, usableUntilMs, ...(refreshToken === undefined ? {} : { refreshToken }) };
}

/** A token endpoint gave a token that cannot be sent as a bearer token. */
class UnusableTokenError extends Error {
  override readonly name = 'UnusableTokenError';
}

/**
 * RFC 6749 §5.2: a server must answer 401 to a client that used HTTP Basic, and may answer 401 to others; Auth0 names it `access_denied`
 * (auth0-angular-samples 201). A server that reads the secret only in the body reports a missing parameter if the secret is in the header,
 * in its own words (metamcp 342, HubSpot: agor 2725). An answer with a refresh token has used up the one that was sent.
 */
const isClientRefused = ({ oauthError, status, refreshToken }: Failure, way: keyof typeof WAYS) =>
  refreshToken === undefined &&
  (oauthError === 'invalid_client' ||
    status === 401 ||
    (way === 'basic' && missesParameter(oauthError, status)));

const missesParameter = (oauthError: string | undefined, status = 0) =>
  oauthError === 'invalid_request' || (oauthError === undefined && UNREADABLE.has(status));

/** Statuses with which servers and their frameworks answer an incomplete form. */
const UNREADABLE: ReadonlySet<number> = new Set([400, 403, 422]);

function fetchedOf(
  { log }: Pick<AuthorizerDeps, 'log'>,
  client: OauthClient,
  answer: { readonly tokens: Tokens } | Failure,
): Fetched {
  if ('tokens' in answer) return answer;
  const { error, status, oauthError, refreshToken } = answer;
  const hint = causes(error).some((each) => each instanceof BlockedAddressError) ? BLOCKED_HINT : undefined;
  const host = new URL(client.tokenUrl).host;
  const line = { credential: client.id, host, status, oauth_error: oauthError, error: kindOf(error), hint };
  log.warn(line, 'no access token');
  const code = oauthError === undefined ? '' : ` (${oauthError})`;
  const failed = authFailed(`The authorization server gave no access token${code}.`);
  return refreshToken === undefined ? failed : { ...failed, refreshToken };
}

/** The error's code or name. Its message is not logged, because it may quote what was sent or answered. */
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

/** RFC 6749 §5.2 and §4.1.2.1, RFC 8707 §2. Only these codes are shown, because other text could contain a secret. */
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
