import { randomUUID } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import type { EncryptionKeys, PublicKeys } from '@presign/crypto';
import type { RedisClient } from '@presign/limits';
import type { Provider } from '@presign/providers';
import type { Database } from '@presign/schema/database';
import { Hono } from 'hono';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { Closing } from './closing.ts';
import { llmVerifier } from './grant/llm-grant.ts';
import { bundleVerifier, mcpVerifier } from './grant/mcp-grant.ts';
import { grantMemory } from './grant/policy.ts';
import { health } from './health.ts';
import type { BodyBudget } from './http/body-memory.ts';
import { preflight } from './http/cors.ts';
import { answerRefusal } from './http/refuse.ts';
import type { Leases } from './limits/leases.ts';
import type { Revocations } from './limits/revocations.ts';
import { llmCall } from './llm/call.ts';
import { describeGrant } from './llm/describe.ts';
import { createAuthorizer } from './mcp/auth/authorize.ts';
import { bundle } from './mcp/bundle.ts';
import { mcpCall } from './mcp/call.ts';
import type { Listeners } from './mcp/legacy-sse.ts';
import type { McpPrices } from './mcp/price.ts';
import type { UnderWay } from './under-way.ts';

/** What the gateway is made of; created once in `main.ts`. */
export type GatewayDeps = {
  /** Asked only when a grant is not in Redis. */
  readonly db: Database;
  readonly redis: RedisClient;
  readonly publicKeys: PublicKeys;
  readonly encryptionKeys: EncryptionKeys;
  readonly providers: ReadonlyMap<string, Provider>;
  /** Public address: the audience of its tokens. */
  readonly gatewayUrl: string;
  /** Sends to upstreams; guards the addresses it connects to. */
  readonly dispatcher: Dispatcher;
  readonly leases: Leases;
  readonly revocations: Revocations;
  readonly underWay: UnderWay;
  readonly closing: Closing;
  /** Streams of MCP's older transport. */
  readonly listeners: Listeners;
  readonly mcpPrices: McpPrices;
  /** Room for the bodies that are read whole. */
  readonly bodyBudget: BodyBudget;
  readonly leaseMs: number;
  readonly upstreamTimeoutMs: number;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
};

/** What a request carries from middleware to route. */
export type GatewayEnv = { Bindings: HttpBindings; Variables: { requestId: string } };

/** Builds the gateway: is this call allowed, what did it cost. */
export function createGateway(deps: GatewayDeps): Hono<GatewayEnv> {
  const app = new Hono<GatewayEnv>();
  app.use(async (c, next) => {
    c.set('requestId', randomUUID());
    await next();
  });
  app.onError((error, c) => {
    // Only where it happened: a message may quote what must stay secret.
    const frames = error.stack?.split('\n').filter((line) => line.startsWith('    at '));
    deps.log.error({ request_id: c.get('requestId'), error: error.name, stack: frames }, 'internal_error');
    return answerRefusal(c, { code: 'internal_error' });
  });
  app.notFound((c) => answerRefusal(c, { code: 'not_found' }));
  app.options('*', preflight);
  health(app, deps);
  const memory = grantMemory();
  const llm = { ...deps, verify: llmVerifier(deps), memory };
  app.get('/llm/t/:token', describeGrant(llm));
  app.all('/llm/t/*', llmCall(llm));
  const mcp = mcpCall({ ...deps, verify: mcpVerifier(deps), memory, authorizer: createAuthorizer(deps) });
  app.all('/mcp/mcp', mcp);
  // Some clients want the older transport's address to end so.
  app.all('/mcp/sse', mcp);
  app.all('/mcp/bundle/:token', bundle({ ...deps, verify: bundleVerifier(deps), memory }));
  return app;
}
