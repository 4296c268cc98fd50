import type { ErrorBody } from '../generated/types.ts';

/** The issuer's codes, those of this client, and any that a newer issuer has. */
export type ErrorCode = ErrorBody['error']['code'] | ClientCode | (string & {});
type ClientCode = keyof typeof MESSAGES;

const MESSAGES = {
  connection_failed: 'the issuer was not reached, or broke off',
  timed_out: 'no answer in time',
  unexpected_answer: 'the answer is not one of an issuer',
};

export type Told = {
  readonly code: ErrorCode;
  readonly message: string;
  readonly status?: number | undefined;
  readonly param?: string | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
};

/**
 * A request that was refused, or not answered. It never has the API key; of the request it names method and path,
 * and where there was no answer the address of the issuer, without what is in its path.
 */
export class PresignError extends Error {
  override readonly name = 'PresignError';
  /** Stable: programs switch on it. */
  readonly code: ErrorCode;
  /** The answer's HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;
  /** The field or header at fault. */
  readonly param: string | undefined;
  /** Names the request in the issuer's log. */
  readonly requestId: string | undefined;
  /** When the same request may succeed. */
  readonly retryAfterSeconds: number | undefined;
  /** Further facts of the refusal, by code. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor({ message, code, status, param, requestId, retryAfterSeconds, details = {} }: Told) {
    super(message);
    this.code = code;
    this.status = status;
    this.param = param;
    this.requestId = requestId;
    this.retryAfterSeconds = retryAfterSeconds;
    this.details = details;
  }
}

/** What is told of a request that failed on this side. */
export function failed(code: ClientCode, { what }: { readonly what: string }, why?: string): Told {
  return { code, message: `${what}: ${MESSAGES[code]}${why === undefined ? '' : ` (${why})`}.` };
}
