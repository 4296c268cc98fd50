import type { Dialect } from './dialect.ts';

/** The header in which a provider expects its key. */
export type Credential =
  | { readonly header: 'authorization'; readonly scheme: 'Bearer' }
  | { readonly header: 'x-api-key' | 'x-goog-api-key' | 'api-key' };

export const BEARER: Credential = { header: 'authorization', scheme: 'Bearer' };

/** An endpoint whose API we know. Others are forwarded too, but nothing is known of their bodies. */
export type Route = {
  /** Path after the provider's origin; `*` stands for one or more characters but `/`. */
  path: string;
  dialect: Dialect;
  /** Where the endpoint takes its key elsewhere than the rest of the provider. */
  credential?: Credential;
};

/**
 * A call that the provider does not charge for, whatever its query and body: held at 0, nothing metered.
 * Matched byte for byte (`costsNothing`), so that no other spelling of a path that costs passes for it.
 */
export type FreeCall = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** As in a route: `*` stands for one or more characters but `/`. */
  readonly path: string;
};

/** Microdollars per million tokens, whole numbers. Cache rates are absent where the operator gave none. */
export type ModelPrice = {
  inputMicrousdPerMtok: number;
  outputMicrousdPerMtok: number;
  cacheReadMicrousdPerMtok?: number;
  cacheWriteMicrousdPerMtok?: number;
};

/** A provider is data: where it is, how it is told the key, which dialect it speaks on which path. */
export type Provider = {
  id: string;
  /**
   * Origin, and a path prefix if it has one; without a trailing slash. A call goes to `baseUrl + path`.
   * undefined where each customer has an address of their own, which the operator must supply.
   */
  baseUrl: string | undefined;
  credential: Credential;
  routes: readonly Route[];
  /** Calls that cost nothing: lists, stored answers, token counts. All others cost. */
  free?: readonly FreeCall[];
  /** Name of the provider in @pydantic/genai-prices where it differs from `id`. */
  priceList?: string;
  /** The operator's own prices by model; none for built-in providers. */
  pricing?: ReadonlyMap<string, ModelPrice>;
};

/**
 * Headers in which providers take credentials: a holder's own are never forwarded.
 * All that built-in providers read, plus Azure API Management's.
 */
export const HOLDER_CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  'authorization',
  'proxy-authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'ocp-apim-subscription-key',
]);

/**
 * Query keys in which providers take credentials, in lower case, to be compared so; dropped from every call.
 * Google reads its system parameters with and without `$`
 * (https://cloud.google.com/apis/docs/system-parameters), and headers and even the method out of
 * `$httpHeaders` and `$httpMethod` (Closure's goog.net.rpc.HttpCors), which would undo what we checked.
 */
export const CREDENTIAL_QUERY_KEYS: ReadonlySet<string> = new Set([
  'key',
  '$key',
  'api_key',
  'api-key',
  'apikey',
  '$apikey',
  'access_token',
  '$access_token',
  'oauth_token',
  '$oauth_token',
  'bearer_token',
  'subscription-key',
  '$httpheaders',
  '$httpmethod',
]);

/**
 * Headers and query keys, in lower case, that name the only fields an answer is to have, and so could leave out
 * of it what was used: Google's system parameters, read with and without `$`
 * (https://cloud.google.com/apis/docs/system-parameters). No API that is metered uses them for anything else.
 */
export const PARTIAL_ANSWER_HEADERS: readonly string[] = ['x-goog-fieldmask'];
export const PARTIAL_ANSWER_QUERY_KEYS: ReadonlySet<string> = new Set(['fields', '$fields']);
