import type { ErrorBody } from '../generated/types.ts';

/** The issuer's codes, those of this client, and any that a newer issuer has. */
export type ErrorCode = ErrorBody['error']['code'] | ClientCode | (string & {});
type ClientCode = keyof typeof MESSAGES;

const MESSAGES = {
  connection_failed: 'the issuer could not be reached, or the connection broke off',
  timed_out: 'the issuer did not answer in time',
  unexpected_answer: 'the answer is not that of an issuer',
};

export type PresignErrorFields = {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status?: number | undefined;
  readonly param?: string | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
};

/**
 * A request that was refused or not answered. It never contains the API key. It names the method and path of the request,
 * and the host of the issuer if there was no answer.
 */
export class PresignError extends Error {
  override readonly name: string = 'PresignError';
  /** Stable, so that programs can switch on it. */
  readonly code: ErrorCode;
  /** The answer's HTTP status. Undefined if there was no answer. */
  readonly status: number | undefined;
  /** The field or header at fault. */
  readonly param: string | undefined;
  /** The id of the request in the issuer's log. */
  readonly requestId: string | undefined;
  /** When the same request may succeed. */
  readonly retryAfterSeconds: number | undefined;
  /** Further facts of the refusal, by code. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor({
    message,
    code,
    status,
    param,
    requestId,
    retryAfterSeconds,
    details = {},
  }: PresignErrorFields) {
    super(message);
    this.code = code;
    this.status = status;
    this.param = param;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
    this.details = details;
  }
}

/** A field is missing, unknown or wrong. */
export class InvalidRequestError extends PresignError {
  override readonly name = 'InvalidRequestError';
}

/** The API key is not valid. */
export class AuthenticationError extends PresignError {
  override readonly name = 'AuthenticationError';
}

/** The money is spent. */
export class InsufficientQuotaError extends PresignError {
  override readonly name = 'InsufficientQuotaError';
}

/** The API key may not do this. */
export class PermissionDeniedError extends PresignError {
  override readonly name = 'PermissionDeniedError';
}

/** The account has no such thing. */
export class NotFoundError extends PresignError {
  override readonly name = 'NotFoundError';
}

/** Another request or change came first. */
export class ConflictError extends PresignError {
  override readonly name = 'ConflictError';
}

/** Too many requests. `retryAfterSeconds` says when the next may pass. */
export class RateLimitError extends PresignError {
  override readonly name = 'RateLimitError';
}

/** The issuer failed, or a type of refusal that this version does not know. */
export class ApiError extends PresignError {
  override readonly name = 'ApiError';
}

/** The issuer could not be reached, or the connection broke off. */
export class ConnectionFailedError extends PresignError {
  override readonly name = 'ConnectionFailedError';
}

/** The issuer did not answer in time. */
export class TimedOutError extends PresignError {
  override readonly name = 'TimedOutError';
}

/** The answer is not that of an issuer. */
export class UnexpectedAnswerError extends PresignError {
  override readonly name = 'UnexpectedAnswerError';
}

/** By the `type` of the issuer's refusals. */
const REFUSALS = new Map<string, typeof PresignError>([
  ['invalid_request_error', InvalidRequestError],
  ['authentication_error', AuthenticationError],
  ['insufficient_quota', InsufficientQuotaError],
  ['permission_error', PermissionDeniedError],
  ['not_found_error', NotFoundError],
  ['conflict_error', ConflictError],
  ['rate_limit_error', RateLimitError],
]);

/** The error of a refusal. */
export function refused(type: string, fields: PresignErrorFields): PresignError {
  return new (REFUSALS.get(type) ?? ApiError)(fields);
}

const FAILURES = {
  connection_failed: ConnectionFailedError,
  timed_out: TimedOutError,
  unexpected_answer: UnexpectedAnswerError,
};

/** The error of a request that failed on this side. */
export function failed(
  code: ClientCode,
  { what }: { readonly what: string },
  why?: string,
  more: Partial<PresignErrorFields> = {},
): PresignError {
  const message = `${what}: ${MESSAGES[code]}${why === undefined ? '' : ` (${why})`}.`;
  return new FAILURES[code]({ ...more, code, message });
}
