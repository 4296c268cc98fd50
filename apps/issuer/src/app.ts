import { randomUUID } from 'node:crypto';
import type { EncryptionKeys, SigningKey } from '@presign/crypto';
import type { RedisClient } from '@presign/limits';
import type { PrivateUpstreams } from '@presign/outbound';
import type { Provider } from '@presign/providers';
import { RefusedError } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { Hono } from 'hono';
import type { Logger } from 'pino';
import { answerError } from './answer-error.ts';
import { type ApiKey, authenticate } from './authenticate.ts';
import { health } from './health.ts';
import { limitBody } from './limit-body.ts';
import { limitRequests } from './limit-requests.ts';
import { reference } from './openapi/reference.ts';
import { ROUTES } from './routes.ts';

/** What the issuer is made of; created once in `main.ts`. */
export type IssuerDeps = {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly signingKey: SigningKey;
  /** PASERK `k4.public` of keys whose tokens are still valid, beside the signing key's own. */
  readonly olderPublicKeys: readonly string[];
  readonly encryptionKeys: EncryptionKeys;
  readonly providers: ReadonlyMap<string, Provider>;
  /** Public addresses, without a slash at the end. */
  readonly issuerUrl: string;
  readonly gatewayUrl: string;
  /** Of an API key without a limit of its own. */
  readonly requestsPerMinute: number;
  /** What webhooks may reach beside public addresses. */
  readonly allowPrivateUpstreams: PrivateUpstreams;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
};

/** What a request carries from middleware to route. */
export type IssuerEnv = {
  Variables: {
    requestId: string;
    apiKey: ApiKey;
    /** Refuses with 401 if the API key has been revoked or has expired since. */
    authenticateAgain: () => Promise<void>;
  };
};

/** Builds the issuer: who may call what, until when, for how much. */
export function createIssuer(deps: IssuerDeps): Hono<IssuerEnv> {
  const app = new Hono<IssuerEnv>();
  app.use(async (c, next) => {
    const started = deps.now();
    c.set('requestId', randomUUID());
    await next();
    c.header('x-request-id', c.get('requestId'));
    c.header('cache-control', 'no-store');
    c.header('referrer-policy', 'no-referrer');
    c.header('x-content-type-options', 'nosniff');
    const { method, path } = c.req;
    const line = {
      request_id: c.get('requestId'),
      method,
      path: redacted(path),
      status: c.res.status,
      ms: deps.now() - started,
    };
    // Probes come every few seconds.
    const isProbe = /^\/(healthz|readyz)$/.test(path) && c.res.ok;
    deps.log[isProbe ? 'debug' : 'info'](line, 'request');
  });
  app.onError(answerError(deps.log));
  app.notFound((c) => answerError(deps.log)(new RefusedError({ code: 'not_found', message: NO_ROUTE }), c));

  health(app, deps);
  reference(app, deps);
  for (const { shape, mount } of Object.values(ROUTES)) if (shape.scope === undefined) mount(app, deps);
  const admitted = [authenticate(deps), limitRequests(deps)] as const;
  app.use('/v1/*', ...admitted);
  app.use('/v2/*', ...admitted);
  app.use(limitBody);
  for (const { shape, mount } of Object.values(ROUTES)) if (shape.scope !== undefined) mount(app, deps);
  return app;
}

const NO_ROUTE = 'There is no such method and path here: GET /docs has all.';

/** A path may hold what was meant for the gateway, or for a header. */
const redacted = (path: string) => path.replace(/(v4\.public\.|presign_sk_)[\w.-]*/g, '$1…');
