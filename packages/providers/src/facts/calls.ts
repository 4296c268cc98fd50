import type { Names } from './fact.ts';

/** Headers and query keys of calls, in lower case, that mean the same at every provider that reads them. */

/** Headers in which providers take credentials: all that built-in providers read, and that of Azure API Management. */
export const CREDENTIAL_HEADERS: Names = {
  source:
    'the SDK of each built-in provider; https://learn.microsoft.com/azure/api-management/api-management-subscriptions; https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html',
  date: '2026-11-22',
  names: [
    'authorization',
    'proxy-authorization',
    'x-api-key',
    'x-goog-api-key',
    'api-key',
    'ocp-apim-subscription-key',
    'x-amz-security-token',
  ],
};

/** Query keys in which providers take credentials. */
export const CREDENTIAL_KEYS: Names = {
  source: 'RFC 6750 §2.3; https://learn.microsoft.com/azure/api-management/api-management-subscriptions',
  date: '2026-11-22',
  names: ['api-key', 'apikey', 'bearer_token', 'subscription-key'],
};

/**
 * Google reads its system parameters with and without `$`. It also reads headers and the method from `$httpHeaders` and
 * `$httpMethod` (Closure's goog.net.rpc.HttpCors), which would undo our checks.
 */
export const CREDENTIAL_KEYS_OF_GOOGLE: Names = {
  source: 'https://cloud.google.com/apis/docs/system-parameters',
  date: '2026-11-22',
  names: [
    ...['key', '$key', 'api_key', '$apikey', 'access_token', '$access_token', 'oauth_token', '$oauth_token'],
    ...['$userproject', 'userproject', '$httpheaders', '$httpmethod'],
  ],
};

export const CREDENTIAL_KEYS_OF_AWS: Names = {
  source: 'https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html',
  date: '2026-11-22',
  names: ['x-amz-credential', 'x-amz-security-token', 'x-amz-signature'],
};

/**
 * Headers and query keys that select the fields of an answer, and so could remove its usage. Google reads the key with and without `$`.
 * No API that is metered uses them for anything else.
 */
export const PARTIAL_ANSWER_HEADERS: Names = {
  source: 'https://cloud.google.com/apis/docs/system-parameters',
  date: '2026-11-22',
  names: ['x-goog-fieldmask'],
};

export const PARTIAL_ANSWER_KEYS: Names = {
  source: 'https://cloud.google.com/apis/docs/system-parameters',
  date: '2026-11-22',
  names: ['fields', '$fields'],
};

/** The project that pays, next to the access token of a service account. */
export const PAYING_PROJECT_HEADERS: Names = {
  source: 'https://cloud.google.com/apis/docs/system-parameters',
  date: '2026-11-22',
  names: ['x-goog-user-project'],
};

/** Headers of betas, which may work, and be billed, in other ways. Routers forward those of `x-anthropic-beta`. Clouds read some in bodies. */
export const BETA_HEADERS: Names = {
  source: '`openai` 7.59, resources/beta; https://openrouter.ai/docs/guides/routing/provider-selection',
  date: '2026-11-27',
  names: ['openai-beta', 'anthropic-beta', 'x-anthropic-beta'],
};

/** Values of `openai-beta` that change no price: each names a version of an API whose calls are judged by their fields. */
export const HARMLESS_BETAS_OF_OPENAI: Names = {
  source:
    '`openai` 7.59, resources/beta; openai/codex, codex-rs/core/src/client.rs of 2025; Codex 0.171, which opens sockets with responses_websockets',
  date: '2026-11-29',
  names: [
    'assistants=v1',
    'assistants=v2',
    'realtime=v1',
    'responses=experimental',
    'responses_websockets=2026-02-06',
  ],
};

/** Values of `openai-beta` by which one call runs several models. */
export const COSTLY_BETAS_OF_OPENAI: Names = {
  source: '`openai` 7.59, resources/beta/responses',
  date: '2026-11-28',
  names: ['responses_multi_agent=v1'],
};
