import { z } from 'zod';

/** What goes wrong, in one table for both services: code → HTTP status, error type, message. */
export const ERRORS = {
  invalid_request: [400, 'invalid_request_error', 'The request is not valid.'],
  invalid_json: [400, 'invalid_request_error', 'The body is not valid JSON.'],
  unknown_provider: [400, 'invalid_request_error', 'This provider is not known here.'],
  unauthenticated: [
    401,
    'authentication_error',
    'Send a valid API key as "Authorization: Bearer <API_KEY>".',
  ],
  token_invalid: [401, 'authentication_error', 'This URL is not valid.'],
  token_expired: [401, 'authentication_error', 'This URL has expired.'],
  cost_limit_reached: [402, 'insufficient_quota', 'The spend limit of this URL is reached.'],
  cost_limit_too_low: [
    402,
    'insufficient_quota',
    'What is left of the spend limit does not cover this call.',
  ],
  forbidden: [403, 'permission_error', 'This API key may not do that.'],
  grant_revoked: [403, 'permission_error', 'This URL has been revoked.'],
  uses_exhausted: [403, 'permission_error', 'All uses of this URL are spent.'],
  path_not_allowed: [403, 'permission_error', 'This URL does not allow that path.'],
  method_not_allowed: [403, 'permission_error', 'This URL does not allow that method.'],
  tool_not_allowed: [403, 'permission_error', 'This URL does not allow that tool.'],
  not_found: [404, 'not_found_error', 'There is nothing here.'],
  session_conflict: [409, 'conflict_error', 'This session cannot be joined.'],
  idempotency_conflict: [409, 'conflict_error', 'This Idempotency-Key was used for another request.'],
  last_admin_key: [409, 'conflict_error', 'This is the last valid admin key of the account.'],
  virtual_key_revoked: [409, 'conflict_error', 'This virtual key was deleted.'],
  body_too_large: [413, 'invalid_request_error', 'The body is too large.'],
  unsupported_media_type: [415, 'invalid_request_error', 'The body must be a JSON object.'],
  price_unknown: [
    422,
    'invalid_request_error',
    'The price of this model is not known, so no spend limit can hold.',
  ],
  cost_unbounded: [
    422,
    'invalid_request_error',
    'The cost of this call has no known bound, so no spend limit can hold.',
  ],
  rate_limited: [429, 'rate_limit_error', 'Too many requests.'],
  cost_held: [429, 'rate_limit_error', 'What is left of the spend limit is held by calls under way.'],
  internal_error: [500, 'api_error', 'Something failed on our side.'],
  upstream_unreachable: [502, 'api_error', 'The provider could not be reached.'],
  upstream_auth_failed: [502, 'api_error', 'The server did not accept the credential that is kept for it.'],
  overloaded: [503, 'api_error', 'Too many bytes of request bodies are held here just now. Try again.'],
  limits_unavailable: [503, 'api_error', 'Limits cannot be checked now, so no call is let through.'],
  database_unavailable: [503, 'api_error', 'The database does not answer.'],
  upstream_timeout: [504, 'api_error', 'The provider did not answer in time.'],
} as const satisfies Record<string, readonly [number, string, string]>;

const ERROR_TYPES = [...new Set(Object.values(ERRORS).map(([, type]) => type))];

/** A stable, documented name of what went wrong. */
export type ErrorCode = keyof typeof ERRORS;

/** Why a request is not served: a value that steps return and one place turns into an answer. */
export type Refusal = {
  readonly code: ErrorCode;
  /** What exactly is wrong, without any secret; the table's message when left out. */
  readonly message?: string;
  /** The field at fault, as the caller wrote it (`servers[0].auth_config.token`). */
  readonly param?: string;
  /** Further facts for the caller's program, such as `needed` and `remaining` microdollars. */
  readonly details?: Readonly<Record<string, string | number | readonly string[]>>;
  readonly retryAfterSeconds?: number;
  /** Where a rate limit was counted: calls a minute, calls left now, and ms until all are left again. */
  readonly rateLimit?: { readonly perMinute: number; readonly left: number; readonly resetMs: number };
};

const CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

/** The one body of every error of both services; the OpenAI and Anthropic SDKs can read it. */
export const errorEnvelope = z
  .strictObject({
    error: z.looseObject({
      code: z.enum(CODES).meta({ description: 'Stable: programs switch on it.' }),
      message: z
        .string()
        .meta({ description: 'For people. It may be more precise than the table, and may change.' }),
      type: z.enum(ERROR_TYPES).meta({ description: 'Kinds of errors, as SDKs of providers know them.' }),
      param: z
        .string()
        .nullable()
        .meta({ description: 'The field or header at fault, as the caller wrote it.' }),
      request_id: z.guid().meta({ description: 'Names the request in the log.' }),
    }),
  })
  .meta({ id: 'Error' });
export type ErrorBody = z.infer<typeof errorEnvelope>;

/** HTTP status of a refusal. */
export const errorStatus = (refusal: Refusal): number => ERRORS[refusal.code][0];

/** Builds the envelope that both services answer errors with. */
export function errorBody(refusal: Refusal, requestId: string): ErrorBody {
  const [, type, message] = ERRORS[refusal.code];
  return {
    error: {
      code: refusal.code,
      message: refusal.message ?? message,
      type,
      param: refusal.param ?? null,
      request_id: requestId,
      ...refusal.details,
    },
  };
}

/** A refusal thrown through layers that return something else; `onError` turns it into its answer. */
export class RefusedError extends Error {
  readonly refusal: Refusal;
  /** @param options `cause`: what went wrong, for the log */
  constructor(refusal: Refusal, options?: ErrorOptions) {
    super(refusal.message ?? ERRORS[refusal.code][2], options);
    this.name = 'RefusedError';
    this.refusal = refusal;
  }
}

/** How much of a minute's calls is used up. */
export type RateLimit = NonNullable<Refusal['rateLimit']>;

/**
 * The headers of an answer that counted: a quota of `q` calls in `w` seconds, `r` calls left, and `t` seconds until
 * all are left again. Each is a list, to which an upstream may have added its own entry
 * (draft-ietf-httpapi-ratelimit-headers-10 §3, §4).
 */
export const rateLimitHeaders = (rateLimit: RateLimit) => ({
  'ratelimit-policy': `"presign";q=${rateLimit.perMinute};w=60`,
  ratelimit: `"presign";r=${rateLimit.left};t=${seconds(rateLimit.resetMs)}`,
});

/**
 * The refusal of a call that came too early.
 * @param subject begins the message: "This URL", "This API key"
 */
export function rateLimited(
  { rateLimit, waitMs }: { rateLimit: RateLimit; waitMs: number },
  subject: string,
): Refusal {
  const { perMinute } = rateLimit;
  const wait = seconds(waitMs);
  const times = perMinute === 1 ? 'once' : `${perMinute} times`;
  return {
    code: 'rate_limited',
    message: `${subject} may be used ${times} a minute: try again in ${wait} s.`,
    details: { limit: perMinute },
    retryAfterSeconds: wait,
    rateLimit,
  };
}

const seconds = (ms: number): number => Math.ceil(ms / 1000);
