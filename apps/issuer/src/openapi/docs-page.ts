import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Context, Hono } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';
import type { Route } from '../middleware/route.ts';
import { describeApi, type OpenApi } from './describe-api.ts';
import { describeDocs, SCALAR } from './describe-docs.ts';

const zip = promisify(gzip);
const unzip = promisify(gunzip);

/** `/openapi.json`: the OpenAPI document. `/docs`: Scalar's page of it, with the guides. Neither needs an API key. */
export function reference(
  app: Hono<IssuerEnv>,
  routes: Readonly<Record<string, Route>>,
  { issuerUrl, gatewayUrl }: { readonly issuerUrl: string; readonly gatewayUrl: string },
): void {
  // All is made on the first request, because few issuers get one.
  let made: OpenApi | undefined;
  const api = () => {
    made ??= describeApi(routes, issuerUrl);
    return made;
  };
  let page: Promise<Buffer> | undefined;
  let scalar: Promise<Buffer> | undefined;
  const makePage = async () => zip(docsPage(await describeDocs(api(), gatewayUrl)));
  const readScalar = async () => zip(await readFile(SCALAR));

  app.get('/openapi.json', (c) => c.json(api()));
  app.get('/docs', async (c) => {
    page ??= makePage();
    return send(c, await page, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': DOCS_POLICY,
    });
  });
  app.get('/docs/scalar.js', async (c) => {
    scalar ??= readScalar();
    return send(c, await scalar, {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=3600',
    });
  });
}

/** Answers with gzip if the client takes it. Only the zipped form is kept, which is a quarter of the other. */
async function send(c: Context, zipped: Buffer, headers: Record<string, string>): Promise<Response> {
  const takesGzip = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '');
  const body = new Uint8Array(takesGzip ? zipped : await unzip(zipped));
  return c.body(body, 200, {
    ...headers,
    vary: 'accept-encoding',
    ...(takesGzip && { 'content-encoding': 'gzip' }),
  });
}

/** Scalar reads the document and its settings from the element with this id. The document is in the page, so nothing is fetched. */
const docsPage = (document: object): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Presign</title>
</head>
<body>
<noscript>This page needs JavaScript. <a href="openapi.json">The OpenAPI document</a> does not.</noscript>
<script>${STORAGE}</script>
<script id="api-reference" type="application/json" data-configuration="${escaped(JSON.stringify(SETTINGS))}">${JSON.stringify(document).replaceAll('<', '\\u003c')}</script>
<script src="docs/scalar.js"></script>
</body>
</html>
`;

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');

/** No fonts, figures or services of Scalar's company. The page cannot send requests, so it has no button for them. */
const SETTINGS = {
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  showDeveloperTools: 'never',
  hideClientButton: true,
  hideTestRequestButton: true,
  documentDownloadType: 'none',
  hideModels: true,
  // A guide has no second column, and words of tables stay whole.
  customCss:
    '.section-column:empty { display: none } .markdown :is(th, td, td code) { overflow-wrap: normal; word-break: normal }',
};

/** A sandboxed page has no storage: reading `localStorage` throws (HTML, "Web storage"). Scalar's settings last as long as the page. */
const STORAGE = `for (const name of ['localStorage', 'sessionStorage']) {
  const kept = new Map();
  const value = {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, item) => void kept.set(key, String(item)),
    removeItem: (key) => void kept.delete(key),
  };
  Object.defineProperty(window, name, { value });
}`;

/**
 * The sandbox gives the page an origin of its own: it has no cookie and no storage of the issuer, and its requests are those of a stranger.
 * It may run Scalar and the script above, and connect to nothing. Scalar writes its styles into the page. `'self'` is the origin that the
 * page came from, also in a sandbox (CSP 3 §2.2.2).
 */
const DOCS_POLICY = [
  'sandbox allow-scripts',
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash('sha256').update(STORAGE).digest('base64')}'`,
  "style-src 'unsafe-inline'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
