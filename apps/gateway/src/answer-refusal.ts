import { errorBody, errorStatus, type Refusal } from '@presign/schema';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { GatewayEnv } from './app.ts';
import { ANSWER_HEADERS } from './cors.ts';

/** The one place where a refusal becomes an answer. */
export function answerRefusal(c: Context<GatewayEnv>, refusal: Refusal): Response {
  const requestId = c.get('requestId');
  const headers: Record<string, string> = {
    ...ANSWER_HEADERS,
    'cache-control': 'no-store',
    'x-request-id': requestId,
    'x-presign-request-id': requestId,
  };
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds);
  return c.json(errorBody(refusal, requestId), errorStatus(refusal) as ContentfulStatusCode, headers);
}
