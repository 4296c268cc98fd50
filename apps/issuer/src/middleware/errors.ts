import { causeOf, ERRORS, errorBody, type Refusal, RefusedError, rateLimitHeaders } from '@presign/schema';
import { isDatabaseOutage } from '@presign/schema/database';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Logger } from 'pino';
import type { IssuerEnv } from '../deps.ts';
import { DATABASE_UNAVAILABLE } from '../in-time.ts';

/** The one place where errors become answers. What we did not foresee is logged and told as `internal_error`. */
export const answerError =
  (log: Logger) =>
  (error: Error, c: Context<IssuerEnv>): Response => {
    const refusal = refusalOf(error);
    const requestId = c.get('requestId');
    if (ERRORS[refusal.code][0] >= 500) {
      const { message, ...named } = causeOf(error);
      // An unforeseen error's message may quote anything; an outage's tells what the operator must know.
      const told = refusal.code === 'internal_error' ? named : { ...named, message };
      log.error({ request_id: requestId, ...told, stack: framesOf(error) }, refusal.code);
    }
    // RFC 9110 §15.5.2: a 401 says which scheme is wanted.
    if (refusal.code === 'unauthenticated') c.header('www-authenticate', 'Bearer');
    if (mayHaveMoreToSend(c)) c.header('connection', 'close');
    for (const [name, value] of Object.entries(
      refusal.rateLimit ? rateLimitHeaders(refusal.rateLimit) : {},
    )) {
      c.header(name, value);
    }
    if (refusal.retryAfterSeconds !== undefined) c.header('retry-after', String(refusal.retryAfterSeconds));
    return c.json(errorBody(refusal, requestId), ERRORS[refusal.code][0] as ContentfulStatusCode);
  };

function refusalOf(error: Error): Refusal {
  if (error instanceof RefusedError) return error.refusal;
  return isDatabaseOutage(error) ? DATABASE_UNAVAILABLE : { code: 'internal_error' };
}

/**
 * Whether a refusal may come before the whole body has: the rest of it is not waited for, so the connection
 * must not be used again (RFC 9110 §15.5.14, RFC 9112 §9.3).
 */
const mayHaveMoreToSend = (c: Context) =>
  c.req.header('transfer-encoding') !== undefined ||
  Number(c.req.header('content-length') ?? 0) > AT_ONCE_BYTES;

/** What arrives with the headers or right behind them. */
const AT_ONCE_BYTES = 65_536;

/** Where it happened, without the message. */
function framesOf({ stack, cause }: Error): string[] | undefined {
  const text = cause instanceof Error ? cause.stack : stack;
  return text?.split('\n').filter((line) => line.startsWith('    at '));
}
