import { randomUUID } from 'node:crypto';
import { type Context, Hono, type Next } from 'hono';
import type { GatewayDeps, GatewayEnv } from './deps.ts';
import { grantMemory } from './grant/policy.ts';
import { bundleVerifier, llmVerifier, mcpVerifier } from './grant/verify.ts';
import { ANSWER_HEADERS, ambiguousRequest } from './http/headers.ts';
import { refusalAnswer } from './http/refuse.ts';
import { createFreeWork } from './limits/free-work.ts';
import { llmCall } from './llm/call.ts';
import { describeGrant } from './llm/describe.ts';
import { createAuthorizer } from './mcp/auth/authorize.ts';
import { bundle } from './mcp/bundle.ts';
import { mcpCall } from './mcp/call.ts';
import { watchReadiness } from './readiness.ts';

/** Builds the gateway: it decides whether a call is allowed, and counts what the call costs. */
export function createGateway(deps: GatewayDeps): Hono<GatewayEnv> {
  const app = new Hono<GatewayEnv>();
  app.use(async (c, next) => {
    const requestId = randomUUID();
    c.set('requestId', requestId);
    const message = ambiguousRequest(c.env.incoming);
    if (message === undefined) return next();
    const refused = refusalAnswer({ code: 'invalid_request', message }, requestId);
    refused.headers.set('connection', 'close');
    return refused;
  });
  app.onError((error, c) => {
    // Only the stack's frames are logged: a message may quote a secret.
    const frames = error.stack?.split('\n').filter((line) => line.startsWith('    at '));
    deps.log.error({ request_id: c.get('requestId'), error: error.name, stack: frames }, 'internal_error');
    return refusalAnswer({ code: 'internal_error' }, c.get('requestId'));
  });
  app.notFound((c) => refusalAnswer({ code: 'not_found' }, c.get('requestId')));
  app.options('*', preflight);
  addHealthRoutes(app, deps);
  const memory = grantMemory();
  const llm = { ...deps, verify: llmVerifier(deps), memory };
  app.get('/llm/t/:token', describeGrant(llm));
  app.all('/llm/t/*', llmCall(llm));
  const mcp = mcpCall({
    ...deps,
    verify: mcpVerifier(deps),
    memory,
    authorizer: createAuthorizer(deps),
    freeWork: createFreeWork(deps.now),
  });
  app.all('/mcp/mcp', mcp);
  // Some clients accept an address of the 2024-11-05 transport only if it ends in `/sse`.
  app.all('/mcp/sse', mcp);
  app.all('/mcp/bundle/:token', bundle({ ...deps, verify: bundleVerifier(deps), memory }));
  return app;
}

/** How long a browser may remember a preflight. Chromium allows at most 2 hours. */
const PREFLIGHT_SECONDS = '7200';

/**
 * Answers a CORS preflight (Fetch standard §3.2.2) without costing a use. Method and headers are echoed, because a
 * wildcard does not cover `authorization`. Other OPTIONS requests go on to their route.
 */
async function preflight(c: Context<GatewayEnv>, next: Next) {
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

/** `/healthz`: the process is alive. `/readyz`: whether calls can pass, and what this gateway cannot do. */
function addHealthRoutes(app: Hono<GatewayEnv>, deps: GatewayDeps): void {
  const readiness = watchReadiness(deps);
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/readyz', async (c) => {
    const report = await readiness();
    return c.json(report, report.status === 'ready' ? 200 : 503);
  });
}
