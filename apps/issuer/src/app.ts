import { randomUUID } from 'node:crypto';
import { RefusedError } from '@presign/schema';
import { Hono } from 'hono';
import type { IssuerDeps, IssuerEnv } from './deps.ts';
import { health } from './health.ts';
import { authenticate } from './middleware/authenticate.ts';
import { answerError } from './middleware/errors.ts';
import { limitBody } from './middleware/limit-body.ts';
import { limitRequests } from './middleware/request-limits.ts';
import { reference } from './openapi/reference.ts';
import { ROUTES } from './routes.ts';

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
