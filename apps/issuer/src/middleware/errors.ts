import { ERRORS, errorBody, type Refusal, RefusedError, rateLimitHeaders } from '@presign/schema';
import { boundLines, causeOf } from '@presign/service';
import { isDatabaseOutage } from '@presign/service/database';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Logger } from 'pino';
import type { IssuerEnv } from '../identity/caller.ts';
import { CALLER_LEFT_STATUS, CallerLeft } from './caller-left.ts';

/** The answer to a request that needs Postgres while Postgres does not answer. */
export const DATABASE_UNAVAILABLE: Refusal = { code: 'database_unavailable', retryAfterSeconds: 1 };

/** The one place where errors become answers. An unexpected error is logged and answered as `internal_error`. */
export const answerError = (log: Logger) => {
  const mayLog = boundLines(log, 'api_key', 'refused requests were not logged');
  return (error: Error, c: Context<IssuerEnv>): Response => {
    if (error instanceof CallerLeft) {
      c.set('refused', 'caller_left');
      return new Response(null, { status: CALLER_LEFT_STATUS });
    }
    const refusal = toRefusal(error);
    const requestId = c.get('requestId');
    c.set('refused', refusal.code);
    if (ERRORS[refusal.code][0] >= 500 && mayLog(c.get('apiKey')?.id ?? '')) {
      const { message, ...named } = causeOf(error);
      // The message of an unexpected error may quote anything. The message of an outage is for the operator.
      const logged = refusal.code === 'internal_error' ? named : { ...named, message };
      log.error({ request_id: requestId, ...logged, stack: framesOf(error) }, refusal.code);
    }
    // RFC 9110 §15.5.2: a 401 names the scheme that it expects.
    if (refusal.code === 'unauthenticated') c.header('www-authenticate', 'Bearer');
    if (mayHaveMoreToSend(c)) c.header('connection', 'close');
    for (const [name, value] of Object.entries(rateLimitHeaders(refusal.rateLimits))) c.header(name, value);
    if (refusal.retryAfterSeconds !== undefined) c.header('retry-after', String(refusal.retryAfterSeconds));
    return c.json(errorBody(refusal, requestId), ERRORS[refusal.code][0] as ContentfulStatusCode);
  };
};

function toRefusal(error: Error): Refusal {
  if (error instanceof RefusedError) return error.refusal;
  return isDatabaseOutage(error) ? DATABASE_UNAVAILABLE : { code: 'internal_error' };
}

/**
 * Whether the refusal may be sent before the whole body has arrived. The issuer does not read the rest, so the
 * connection must not be used again (RFC 9110 §15.5.14, RFC 9112 §9.3).
 */
const mayHaveMoreToSend = (c: Context) =>
  c.req.header('transfer-encoding') !== undefined ||
  Number(c.req.header('content-length') ?? 0) > AT_ONCE_BYTES;

/** A body up to this length arrives with the headers or right after them. */
const AT_ONCE_BYTES = 65_536;

/** The frames of the stack, without the message. */
function framesOf({ stack, cause }: Error): string[] | undefined {
  const text = cause instanceof Error ? cause.stack : stack;
  return text?.split('\n').filter((line) => line.startsWith('    at '));
}
