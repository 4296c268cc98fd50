import { randomUUID } from 'node:crypto';
import {
  ambiguousRequest,
  REQUEST_LIMITS,
  RefusedError,
  rateLimited,
  rateLimitHeaders,
} from '@presign/schema';
import { boundLines } from '@presign/service';
import { logFields } from '@presign/service/log';
import { withoutPublicPath } from '@presign/service/start';
import { type Context, Hono, type MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { matchedRoutes } from 'hono/route';
import { getPath } from 'hono/utils/url';
import { serveClients } from './clients/serve-clients.ts';
import { serveConsole } from './console/serve-console.ts';
import { signIn } from './console/sign-in.ts';
import type { IssuerDeps } from './deps.ts';
import { serveDocs } from './docs/serve-docs.ts';
import type { ApiKey, IssuerEnv } from './identity/caller.ts';
import { authenticate } from './middleware/authenticate.ts';
import { unlessLeft } from './middleware/caller-left.ts';
import { countInTime } from './middleware/count-in-time.ts';
import { answerError } from './middleware/errors.ts';
import { reference } from './openapi/api-page.ts';
import { frontPage } from './openapi/front-page.ts';
import { addHealthRoutes } from './readiness.ts';
import { ROUTES } from './routes.ts';

/** Builds the issuer's HTTP app: middleware, probes, the reference, and every route of the API. */
export function createIssuer(deps: IssuerDeps): Hono<IssuerEnv> {
  const ownPath = withoutPublicPath(deps.issuerUrl, PATHS);
  const mayLog = boundLines(deps.log, 'api_key', 'refused requests were not logged');
  const refuse = answerError(deps.log);
  const app = new Hono<IssuerEnv>({ getPath: (request) => ownPath(getPath(request)) });
  app.use(async (c, next) => {
    const started = deps.now();
    const beganAt = deps.traces ? performance.now() : 0;
    c.set('requestId', randomUUID());
    // Before the answer exists: Hono makes the answer again for each header that comes after it.
    c.header('x-request-id', c.get('requestId'));
    c.header('cache-control', 'no-store');
    c.header('referrer-policy', 'no-referrer');
    c.header('x-content-type-options', 'nosniff');
    await next();
    const { method, path } = c.req;
    const ms = deps.now() - started;
    const route = routeOf(c);
    deps.metrics.requestEnded(route, c.res.status, ms);
    const apiKey: ApiKey | undefined = c.get('apiKey');
    const line = {
      request_id: c.get('requestId'),
      method,
      path: redacted(path),
      status: c.res.status,
      code: c.get('refused'),
      account: apiKey?.accountId,
      api_key: apiKey?.id,
      ms,
    };
    // Probes come every few seconds.
    const isProbe = /^\/(healthz|readyz)$/.test(path) && c.res.ok;
    if (!isProbe)
      deps.traces?.requestEnded({
        method,
        beganAt,
        requestId: line.request_id,
        status: line.status,
        code: line.code,
        path: route?.slice(route.indexOf('/')),
        traceparent: c.req.header('traceparent'),
      });
    if (line.status >= 400 && !mayLog(apiKey?.id ?? '')) return;
    logFields(deps.log, isProbe ? 'debug' : 'info', line, 'request');
  });
  app.use(async (c, next) => {
    const message = ambiguousRequest(c.env.incoming);
    if (message === undefined) return next();
    c.header('connection', 'close');
    throw new RefusedError({ code: 'invalid_request', message });
  });
  app.onError(refuse);
  app.notFound((c) => refuse(noRoute(c), c));

  addHealthRoutes(app, deps);
  addPages(app, deps);
  for (const { shape, mount } of Object.values(ROUTES)) if (shape.scope === undefined) mount(app, deps);
  const admitted = [authenticate(deps), limitRequests(deps)] as const;
  app.use('/v1/*', ...admitted);
  app.use('/v2/*', ...admitted);
  app.use(limitBody);
  for (const { shape, mount } of Object.values(ROUTES)) if (shape.scope !== undefined) mount(app, deps);
  return app;
}

/** Everything that a browser or a package manager gets without an API key, and the console, which signs in with one. */
function addPages(app: Hono<IssuerEnv>, deps: IssuerDeps): void {
  frontPage(app, deps);
  reference(app, ROUTES, deps);
  serveDocs(app, deps);
  serveClients(app, deps);
  signIn(app, deps);
  serveConsole(app, deps);
}

/** How the paths of the issuer begin. */
const PATHS = /\/(?:v[12]\/|healthz|readyz|docs|console|clients|openapi\.json|llms(?:-full)?\.txt|$)/;

function noRoute(c: Context): RefusedError {
  const methods = methodsOf(c.req.path);
  if (methods.length === 0) {
    const meant = MEANT.get(c.req.path);
    return new RefusedError({
      code: 'not_found',
      message: meant ? `${NO_ROUTE} Perhaps you mean ${meant}.` : NO_ROUTE,
    });
  }
  // RFC 9110 §15.5.6: a 405 lists the methods.
  c.header('allow', methods.join(', '));
  return new RefusedError({ code: 'method_not_supported' });
}

const NO_ROUTE = 'No route has this method and path. GET /docs/api lists all routes.';

/** Paths of another version, which people mistype. */
const MEANT = new Map([
  ['/v1/mcp-presign', 'POST /v2/mcp-presign'],
  ['/v2/presign', 'POST /v1/presign'],
]);

const OPERATORS = [
  '/',
  '/healthz',
  '/readyz',
  '/docs',
  '/docs/api',
  '/openapi.json',
  '/llms.txt',
  '/llms-full.txt',
].map((path) => ({
  method: 'GET',
  path,
}));
const ADDRESSES = [
  ...Object.values(ROUTES).map(({ shape }) => ({ method: shape.method.toUpperCase(), path: shape.path })),
  ...OPERATORS,
].map(({ method, path }) => ({ method, form: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }));

/** The methods of an address. A route of GET answers HEAD, too. */
function methodsOf(path: string): string[] {
  const found = ADDRESSES.filter(({ form }) => form.test(path)).map(({ method }) => method);
  return found.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).sort();
}

/** The route of a request, as `GET /v1/sessions/{id}`. Middleware has a path with a `*`, and is no route. */
function routeOf(c: Context<IssuerEnv>): string | undefined {
  const last = matchedRoutes(c).at(-1);
  if (!last || last.path.includes('*')) return undefined;
  return `${last.method} ${last.path.replaceAll(/:(\w+)/g, '{$1}')}`;
}

/** Longer than the path of any route with its ids. */
const LOGGED_PATH_CHARS = 200;

/** The path as it is logged: cut, and without a token or an API key that a caller put into it by mistake. */
function redacted(path: string): string {
  const shown = path.replace(/(v4\.public\.|presign_sk_)[\w.-]*/g, '$1…');
  return shown.length > LOGGED_PATH_CHARS ? `${shown.slice(0, LOGGED_PATH_CHARS)}…` : shown;
}

const BODY_MAX_BYTES = REQUEST_LIMITS.body_bytes;

/**
 * Counts the requests of an API key over all issuers, and refuses those above its limit for a minute with 429. While
 * Redis does not answer, requests pass uncounted: the URLs they issue have limits of their own, and issuing needs
 * only Postgres.
 */
const limitRequests =
  ({ redis, requestsPerMinute }: IssuerDeps): MiddlewareHandler<IssuerEnv> =>
  async (c, next) => {
    const { id, requestsPerMinute: own } = c.get('apiKey');
    const counted = await countInTime(redis, id, id, own ?? requestsPerMinute);
    if (counted && counted.waitMs > 0) throw new RefusedError(rateLimited(counted, 'This API key'));
    for (const [name, value] of Object.entries(rateLimitHeaders(counted && [counted.rateLimit])))
      c.header(name, value);
    await next();
  };

/**
 * Bounds the body of a request. A `Content-Length` is trusted, because Node reads no more than it says. Other bodies
 * are counted, which makes a whole `Request` with a stream and costs a fifth of what issuing does.
 * @throws RefusedError `body_too_large`
 */
const limitBody: MiddlewareHandler<IssuerEnv> = async (c, next) => {
  const length = c.req.header('content-length');
  if (length === undefined || c.req.header('transfer-encoding') !== undefined)
    return unlessLeft(c, counted(c, next));
  if (Number(length) > BODY_MAX_BYTES) refuseLength();
  return next();
};

const refuseLength = (): never => {
  const message = `The body may have at most ${BODY_MAX_BYTES} bytes.`;
  throw new RefusedError({ code: 'body_too_large', message });
};

const counted = bodyLimit({ maxSize: BODY_MAX_BYTES, onError: refuseLength });
