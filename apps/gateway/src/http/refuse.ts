import { errorBody, errorStatus, type Refusal, rateLimitHeaders } from '@presign/schema';
import type { Context } from 'hono';
import type { GatewayEnv } from '../app.ts';
import { ANSWER_HEADERS } from './cors.ts';

/** A refusal as the answer to the request at hand. */
export const answerRefusal = (c: Context<GatewayEnv>, refusal: Refusal): Response =>
  refusalAnswer(refusal, c.get('requestId'));

/** The one place where a refusal becomes an answer. */
export function refusalAnswer(refusal: Refusal, requestId: string): Response {
  const headers: Record<string, string> = {
    ...ANSWER_HEADERS,
    'cache-control': 'no-store',
    'x-request-id': requestId,
    'x-presign-request-id': requestId,
  };
  if (refusal.rateLimit) Object.assign(headers, rateLimitHeaders(refusal.rateLimit));
  if (refusal.retryAfterSeconds !== undefined) headers['retry-after'] = String(refusal.retryAfterSeconds);
  return Response.json(errorBody(refusal, requestId), { status: errorStatus(refusal), headers });
}
