import type { Context, Next } from 'hono';
import type { GatewayEnv } from '../app.ts';

/**
 * On every answer: browsers of any origin may use a URL; the URL itself is the secret, no cookie is read.
 * Security headers beside it, because the URL must not leave in a `Referer`.
 */
export const ANSWER_HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'x-presign-request-id, x-presign-uses-remaining, x-presign-cost, x-presign-cost-remaining, ' +
    'x-presign-max-tokens, x-request-id, retry-after, ratelimit, ratelimit-policy, mcp-session-id, mcp-protocol-version',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/** How long a browser may remember a preflight; 2 hours is the most Chromium does. */
const PREFLIGHT_SECONDS = '7200';

/**
 * Answers a CORS preflight (Fetch standard §3.2.2) without costing a use. Method and headers are echoed:
 * a wildcard does not cover `authorization`. Any other OPTIONS request goes on.
 */
export async function preflight(c: Context<GatewayEnv>, next: Next) {
  const method = c.req.header('access-control-request-method');
  if (method === undefined || c.req.header('origin') === undefined) return next();
  return c.body(null, 204, {
    ...ANSWER_HEADERS,
    'access-control-allow-methods': method,
    'access-control-allow-headers': c.req.header('access-control-request-headers') ?? '',
    'access-control-max-age': PREFLIGHT_SECONDS,
    vary: 'access-control-request-method, access-control-request-headers',
  });
}
