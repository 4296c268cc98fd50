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
  override readonly name = 'PresignError';
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

/** The error of a request that failed on this side. */
export function failed(
  code: ClientCode,
  { what }: { readonly what: string },
  why?: string,
): PresignErrorFields {
  return { code, message: `${what}: ${MESSAGES[code]}${why === undefined ? '' : ` (${why})`}.` };
}
