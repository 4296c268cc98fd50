import type { ErrorShape, PlainError } from '../dialect.ts';

/**
 * https://platform.claude.com/docs/en/api/errors, "Error shapes". The `@anthropic-ai/sdk` SDK's core/error shows
 * `details.error_code` as `errorCode`, and `details`.
 */
export const anthropicErrors: ErrorShape = Object.assign(bodyOf, {
  /** Claude Code 2.1.332 repeats a 401 for three minutes without showing anything. It shows a 403 at once. */
  ofDeadUrl: 403,
} as const);

function bodyOf(error: PlainError): object {
  const { code, message, param, requestId, details } = error;
  return {
    type: 'error',
    error: {
      type: typeOf(error),
      message,
      code,
      details: { error_code: code, ...(param === null ? {} : { param }), ...ofThread(param), ...details },
    },
    request_id: requestId,
  };
}

/**
 * The provider's own code for a request that does not fit a thread. The SDK's tool runner then sends the whole
 * conversation again, without a thread (`@anthropic-ai/sdk` 1.14, lib/internal/threads/ThreadState).
 */
const ofThread = (param: string | null): object =>
  param === 'thread' || param?.startsWith('thread.')
    ? { error_code: 'thread_unsupported_request', unsupported: [param] }
    : {};

/** The types of the page. It says that `invalid_request_error` stands for every other 4xx, too. */
const TYPES: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
]);

function typeOf({ code, status }: PlainError): string {
  if (code === 'overloaded') return 'overloaded_error';
  return TYPES.get(status) ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}
