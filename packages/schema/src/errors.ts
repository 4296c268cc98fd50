import * as z from 'zod';
import { count, microdollars } from './figures.ts';
import { RATE_ERRORS, type RateLimit } from './limit-kinds.ts';

/**
 * Every error of both services: code → HTTP status, error type, message. A message says what happened, why, and what to do about it.
 * The message of `not_found` names no cause, because the gateway may send it in place of the refusal of a limit.
 */
export const ERRORS = {
  invalid_request: [
    400,
    'invalid_request_error',
    'The request is not valid. Correct it before you repeat it.',
  ],
  invalid_json: [400, 'invalid_request_error', 'The body is not valid JSON. Send a JSON object in UTF-8.'],
  unknown_provider: [
    400,
    'invalid_request_error',
    'No provider has this name here. The operator can add it to PROVIDERS_FILE.',
  ],
  unauthenticated: [
    401,
    'authentication_error',
    'The request has no valid API key. Send one as "Authorization: Bearer <API_KEY>".',
  ],
  token_invalid: [
    401,
    'authentication_error',
    'The token in this URL is not valid here. Use the URL exactly as it was issued.',
  ],
  token_expired: [401, 'authentication_error', 'This URL has expired. Issue a new URL.'],
  cost_limit_reached: [402, 'insufficient_quota', 'This URL has spent its cost_limit. Issue a new URL.'],
  cost_limit_too_low: [
    402,
    'insufficient_quota',
    'This call may cost more than its spend limit has left. Shorten its input, or lower its output bound.',
  ],
  token_limit_reached: [
    402,
    'insufficient_quota',
    'A budget that this URL shares with others has spent its tokens. A new URL of the same budget will not help.',
  ],
  token_limit_too_low: [
    402,
    'insufficient_quota',
    'This call may use more tokens than a shared budget of this URL has left. Shorten its input, or lower its output bound.',
  ],
  forbidden: [403, 'permission_error', 'This API key lacks the scope of this route. Use a key that has it.'],
  policy_forbids: [
    403,
    'permission_error',
    'The policy of this API key does not allow this request. Stay within it, or use another key.',
  ],
  account_limit: [
    403,
    'permission_error',
    'The account has reached a limit that the operator of the service set. Stay within it, or ask the operator.',
  ],
  account_suspended: [
    403,
    'permission_error',
    'The account is suspended, so its URLs and its API keys are refused. Ask the operator of the service.',
  ],
  grant_revoked: [403, 'permission_error', 'This URL has been revoked. Issue a new URL.'],
  uses_exhausted: [403, 'permission_error', 'This URL has no uses left. Issue a new URL.'],
  path_not_allowed: [
    403,
    'permission_error',
    'This URL does not allow this path. Call a path that it was issued for.',
  ],
  method_not_allowed: [
    403,
    'permission_error',
    'This URL does not allow this method. Use the method that it was issued for.',
  ],
  model_not_allowed: [
    403,
    'permission_error',
    'This URL does not allow this model. Call a model that it was issued for.',
  ],
  origin_not_allowed: [
    403,
    'permission_error',
    'This URL may be called by pages of some origins only, and this call does not come from one of them.',
  ],
  address_not_allowed: [
    403,
    'permission_error',
    'This URL may be called from some addresses only, and this call does not come from one of them.',
  ],
  field_not_allowed: [
    403,
    'permission_error',
    'This URL does not allow this field in the body. Leave it out.',
  ],
  tool_not_allowed: [
    403,
    'permission_error',
    'This URL does not allow this tool. Call a tool that it was issued for.',
  ],
  argument_not_allowed: [
    403,
    'permission_error',
    'This URL does not allow this tool with these arguments. Send the arguments that it was issued for.',
  ],
  not_found: [404, 'not_found_error', 'Nothing was found at this address. Check the path and the id in it.'],
  method_not_supported: [
    405,
    'invalid_request_error',
    'This address does not support this method. Use one that the header Allow lists.',
  ],
  session_conflict: [409, 'conflict_error', 'This session cannot take another URL. Use another session_id.'],
  idempotency_conflict: [
    409,
    'conflict_error',
    'Another request has used this Idempotency-Key. Use a new key.',
  ],
  last_admin_key: [409, 'conflict_error', 'This is the last valid admin key. Create another one first.'],
  own_account: [
    409,
    'conflict_error',
    'An API key cannot do this to its own account. Use an operator key of another account.',
  ],
  virtual_key_revoked: [409, 'conflict_error', 'This virtual key was deleted. Use another virtual key.'],
  grant_ended: [
    409,
    'conflict_error',
    'This URL has expired or was revoked, and can never be used again. Issue a new URL.',
  ],
  api_key_ended: [
    409,
    'conflict_error',
    'This API key has expired or was revoked, and can never be used again. Create another one.',
  ],
  budget_deleted: [409, 'conflict_error', 'This budget was deleted. Create another one.'],
  account_deleted: [409, 'conflict_error', 'This account was deleted. Create another one.'],
  budget_conflict: [
    409,
    'conflict_error',
    'This budget does not fit with what the account has. The message says with what.',
  ],
  revision_mismatch: [
    412,
    'conflict_error',
    'The revision is not the one in If-Match: something else has changed it. Read it again.',
  ],
  body_too_large: [413, 'invalid_request_error', 'The body is too large. Send a smaller one.'],
  unsupported_media_type: [
    415,
    'invalid_request_error',
    'The body is not a JSON object. Send one as application/json.',
  ],
  sockets_not_allowed: [
    426,
    'invalid_request_error',
    'This URL cannot be opened as a socket. Send the call as a POST, or use a URL that was issued with sockets.',
  ],
  price_unknown: [
    422,
    'invalid_request_error',
    'The price of this model is not known, so no spend limit can hold. Use another model, or a URL without cost_limit.',
  ],
  cost_unbounded: [
    422,
    'invalid_request_error',
    'The cost of this call has no known bound, so no spend limit can hold. Change the call, or use a URL without cost_limit.',
  ],
  tokens_unbounded: [
    422,
    'invalid_request_error',
    'The tokens of this call have no known bound, so tokens_per_minute or a budget of tokens cannot hold. Change the call, or use a URL without such a limit.',
  ],
  token_rate_too_low: [
    422,
    'invalid_request_error',
    'This call may use more tokens than tokens_per_minute allows. Shorten its input, or lower its output bound.',
  ],
  ...RATE_ERRORS,
  concurrency_limited: [
    429,
    'rate_limit_error',
    'As many calls as concurrent_calls allows are under way. Try again when one has ended.',
  ],
  cost_held: [
    429,
    'rate_limit_error',
    'Calls under way hold too much of the spend limit. Try again when they have ended.',
  ],
  tokens_held: [
    429,
    'rate_limit_error',
    'Calls under way hold too many of the tokens that are left. Try again later.',
  ],
  internal_error: [
    500,
    'api_error',
    'The service failed. Try again, and report this request_id if it fails again.',
  ],
  upstream_unreachable: [502, 'api_error', 'The provider could not be reached. Try again later.'],
  upstream_auth_failed: [
    502,
    'api_error',
    'The server rejected the credential of this URL. Issue a new URL with a valid credential.',
  ],
  overloaded: [503, 'api_error', 'The gateway has no memory left for another request body. Try again.'],
  limits_unavailable: [503, 'api_error', 'Limits cannot be checked now, so no call passes. Try again.'],
  database_unavailable: [503, 'api_error', 'The database does not answer. Try again.'],
  upstream_timeout: [504, 'api_error', 'The provider did not answer in time. Try again later.'],
} as const satisfies Record<string, readonly [number, string, string]>;

const ERROR_TYPES = [...new Set(Object.values(ERRORS).map(([, type]) => type))];

/** A stable, documented name of what went wrong. */
export type ErrorCode = keyof typeof ERRORS;

const CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

/** How the last call of a URL failed. Its codes are those of refusals, and those of answers that the provider began. */
export const lastCall = z.strictObject({
  /** The status of the answer. */
  status: z.int(),
  code: z.enum([...CODES, 'provider_error', 'answer_broken', 'holder_left']),
  /** Unix time in seconds. */
  at: z.int(),
});
export type LastCall = z.infer<typeof lastCall>;

/** Why a token is not valid. Holders do not learn it, because it would help to guess one. */
export type RefusalReason =
  | ('too_long' | 'malformed' | 'unknown_key' | 'bad_signature')
  | ('other_kind' | 'other_gateway' | 'issued_in_the_future' | 'no_such_grant')
  | ('incomplete_url' | 'other_server');

const ofCaller = 'The field or header at fault, as the caller wrote it.';
const param = z.string().nullable().meta({ description: ofCaller });

/** A wrong field of a request. */
const fieldProblem = z.strictObject({ param, message: z.string() }).meta({ id: 'FieldProblem' });
export type FieldProblem = z.infer<typeof fieldProblem>;

/** A condition of an argument. */
type Allowed = { readonly equals?: unknown; readonly prefix?: string | undefined };

/** The reason why a request is refused: a value that steps return and one place turns into an answer. */
export type Refusal = {
  readonly code: ErrorCode;
  /** Instead of the status of the table: the same call may soon pass. */
  readonly status?: 503;
  /** Says what exactly is wrong, without any secret. Without it, the table's message is sent. */
  readonly message?: string;
  /** Says more for the operator's log. No answer shows it. */
  readonly reason?: RefusalReason;
  /** The field at fault, as the caller wrote it (`servers[0].auth_config.token`). */
  readonly param?: string;
  /** Further facts for the caller's program, such as `needed` and `remaining` microdollars. */
  readonly details?: Readonly<
    Record<string, string | number | readonly string[] | LastCall | readonly FieldProblem[] | Allowed>
  >;
  readonly retryAfterSeconds?: number;
  /** Set if no retry can succeed, because the call has taken the last use. */
  readonly shouldRetry?: false;
  /** The rate limits that were counted. */
  readonly rateLimits?: readonly RateLimit[];
};

const errorType = z.enum(ERROR_TYPES).meta({ id: 'ErrorType', description: 'As SDKs of providers name it.' });
/** An error. It has a name of its own, so that generators of clients make one type of it. */
const errorDetails = z
  .looseObject({
    code: z.enum(CODES).meta({ id: 'ErrorCode', description: 'Stable: programs switch on it.' }),
    message: z
      .string()
      .meta({ description: 'For people. It may be more precise than the table, and may change.' }),
    type: errorType,
    param,
    request_id: z.guid().meta({ description: 'Names the request in the log.' }),
    problems: z.array(fieldProblem).optional().meta({
      description:
        'If several fields are wrong: all of them, at most 20. The first is also in `param` and `message`.',
    }),
  })
  .meta({ id: 'ErrorDetails' });

/** The body of every error of both services. The OpenAI and Anthropic SDKs can read it. */
export const errorEnvelope = z.strictObject({ error: errorDetails }).meta({ id: 'Error' });
export type ErrorBody = z.infer<typeof errorEnvelope>;

/** HTTP status of a refusal. */
export const errorStatus = (refusal: Refusal): number => refusal.status ?? ERRORS[refusal.code][0];

/** The message of a refusal: its own, or the table's with the figures of its details. */
export const errorMessage = (refusal: Refusal): string =>
  `${refusal.message ?? messageWithFigures(refusal) ?? ERRORS[refusal.code][2]}${lastCallSentence(refusal)}`;

/** SDKs retry a failed call and show only the refusal of the retry, so the refusal states how that call failed. */
function lastCallSentence({ details: { last_call } = {} }: Refusal): string {
  if (typeof last_call !== 'object' || !('status' in last_call)) return '';
  return ` The last call of this URL ended with status ${last_call.status} (${last_call.code}).`;
}

function messageWithFigures({ code, details: { limit, remaining } = {} }: Refusal): string | undefined {
  if (code === 'uses_exhausted' && limit !== undefined) {
    return `This URL has no uses left (max_uses ${limit}). Issue a new URL.`;
  }
  if (code === 'cost_limit_reached' && typeof limit === 'number') {
    return `This URL has spent its cost_limit of ${microdollars(limit)}. Issue a new URL.`;
  }
  if (code === 'concurrency_limited' && typeof limit === 'number') {
    return `This URL allows ${count(limit, 'call')} at once (concurrent_calls), and they are under way. Try again when one has ended.`;
  }
  if (code === 'cost_held' && typeof remaining === 'number') {
    return `Calls under way hold too much of the ${microdollars(remaining)} that are left of the spend limit. Try again when they have ended.`;
  }
  return undefined;
}

/** Shortens text of the caller for a message, because it can be megabytes long. */
export const briefly = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);

/** Builds the envelope that both services answer errors with. */
export function errorBody(refusal: Refusal, requestId: string): ErrorBody {
  return {
    error: {
      code: refusal.code,
      message: errorMessage(refusal),
      type: ERRORS[refusal.code][1],
      param: refusal.param ?? null,
      request_id: requestId,
      ...refusal.details,
    },
  };
}

/** A refusal to throw where the layers above return something else. `onError` turns it into its answer. */
export class RefusedError extends Error {
  readonly refusal: Refusal;
  /** @param options `cause`: the error to log */
  constructor(refusal: Refusal, options?: ErrorOptions) {
    super(errorMessage(refusal), options);
    this.name = 'RefusedError';
    this.refusal = refusal;
  }
}
