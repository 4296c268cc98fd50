import { type ErrorShape, openaiErrors } from '@presign/providers';
import { errorBody, errorStatus, type Refusal, RefusedError, rateLimitHeaders } from '@presign/schema';
import { boundLines, causeOf } from '@presign/service';
import type { Logger } from 'pino';
import { ANSWER_HEADERS } from './headers.ts';

/**
 * The one place where a refusal becomes an answer.
 * @param shape writes the body in the error format of the call's API
 */
export function refusalAnswer(
  refusal: Refusal,
  requestId: string,
  shape: ErrorShape = openaiErrors,
): Response {
  const status = (isDead(refusal) ? shape.ofDeadUrl : undefined) ?? errorStatus(refusal);
  const { code, message, type, param } = errorBody(refusal, requestId).error;
  const { details = {} } = refusal;
  const body = shape({ status, code, message: `${code}: ${message}`, type, param, requestId, details });
  const headers = Object.assign(refusalHeaders(refusal, requestId), allowOf(refusal));
  if (refusal.shouldRetry === false) headers['x-should-retry'] = 'false';
  return Response.json(body, { status, headers });
}

/** The headers of every answer that refuses. */
export function refusalHeaders(refusal: Refusal, requestId: string): Record<string, string> {
  const headers: Record<string, string> = {
    ...ANSWER_HEADERS,
    'cache-control': 'no-store',
    'x-request-id': requestId,
    'x-presign-request-id': requestId,
    'x-presign-code': refusal.code,
  };
  Object.assign(headers, rateLimitHeaders(refusal.rateLimits));
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds);
  return headers;
}

/** RFC 9110 §15.5.6: a 405 lists the methods. A 403 for a method that the URL does not allow may list them too (§10.2.1). */
export function allowOf({ code, details }: Refusal): { readonly allow?: string } {
  const isOfMethod = code === 'method_not_supported' || code === 'method_not_allowed';
  const allowed = isOfMethod && details?.allowed;
  return Array.isArray(allowed) ? { allow: allowed.join(', ') } : {};
}

/** Whether the URL itself is refused, and so every request to it. */
export const isDead = ({ code }: Refusal): boolean =>
  code === 'token_invalid' || code === 'token_expired' || code === 'grant_revoked';

/** The refusal of a call whose limits cannot be checked now. */
export const UNAVAILABLE: Refusal = { code: 'limits_unavailable', retryAfterSeconds: 1 };

/** Logs the failure of a store. Returns a refusal that says so, so that a failure never looks like a limit. */
export function outageRefusal(log: Logger, requestId: string, error: unknown): Refusal {
  const refusal = error instanceof RefusedError ? error.refusal : UNAVAILABLE;
  const mayLog = MAY_LOG.get(log) ?? boundLines(log, 'code', 'outages were not logged');
  MAY_LOG.set(log, mayLog);
  if (mayLog(refusal.code)) log.error({ request_id: requestId, ...causeOf(error) }, refusal.code);
  return refusal;
}

/** One bound for each logger, and so for each gateway, because an outage refuses every call. */
const MAY_LOG = new WeakMap<Logger, (code: string) => boolean>();
