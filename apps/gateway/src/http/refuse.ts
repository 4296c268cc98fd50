import {
  causeOf,
  errorBody,
  errorStatus,
  type Refusal,
  RefusedError,
  rateLimitHeaders,
} from '@presign/schema';
import type { Logger } from 'pino';
import { ANSWER_HEADERS } from './headers.ts';

/** The one place where a refusal becomes an answer. */
export const refusalAnswer = (refusal: Refusal, requestId: string): Response =>
  Response.json(errorBody(refusal, requestId), {
    status: errorStatus(refusal),
    headers: refusalHeaders(refusal, requestId),
  });

/** The headers of an answer that refuses. */
export function refusalHeaders(refusal: Refusal, requestId: string): Record<string, string> {
  const headers: Record<string, string> = {
    ...ANSWER_HEADERS,
    'cache-control': 'no-store',
    'x-request-id': requestId,
    'x-presign-request-id': requestId,
  };
  if (refusal.rateLimit) Object.assign(headers, rateLimitHeaders(refusal.rateLimit));
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds);
  return headers;
}

/** The refusal of a call whose limits cannot be checked now. */
export const UNAVAILABLE: Refusal = { code: 'limits_unavailable', retryAfterSeconds: 1 };

/** Logs the failure of a store. Returns a refusal that says so, so that a failure never looks like a limit. */
export function outageRefusal(log: Logger, requestId: string, error: unknown): Refusal {
  const refusal = error instanceof RefusedError ? error.refusal : UNAVAILABLE;
  log.error({ request_id: requestId, ...causeOf(error) }, refusal.code);
  return refusal;
}
