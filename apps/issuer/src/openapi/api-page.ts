import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Hono } from 'hono';
import { keep, onceMade, sendKept } from '../answers/send-kept.ts';
import { SCALAR } from '../docs/files.ts';
import type { IssuerEnv } from '../identity/caller.ts';
import type { Route } from '../middleware/route.ts';
import { describeApi, type OpenApi } from './describe-api.ts';
import { describeBoth } from './describe-gateway.ts';

/** `/openapi.json`: the OpenAPI document. `/docs/api`: Scalar's page of it, with the gateway's routes. Neither needs an API key. */
export function reference(
  app: Hono<IssuerEnv>,
  routes: Readonly<Record<string, Route>>,
  { issuerUrl, gatewayUrl }: { readonly issuerUrl: string; readonly gatewayUrl: string },
): void {
  // Everything is built on the first request, because few issuers get one.
  let made: OpenApi | undefined;
  const api = () => {
    made ??= describeApi(routes, issuerUrl);
    return made;
  };
  const page = onceMade(async () =>
    keep(apiPage(describeBoth(api(), gatewayUrl)), {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
    }),
  );
  const scalar = onceMade(async () =>
    keep(await readFile(SCALAR), {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=3600',
    }),
  );

  app.get('/openapi.json', (c) => c.json(api()));
  app.get('/docs/api', async (c) => sendKept(c, await page()));
  app.get('/docs/api/scalar.js', async (c) => sendKept(c, await scalar()));
}

/** Scalar reads the document and its settings from the element with this id. The document is in the page, so nothing is fetched. */
const apiPage = (document: object): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The API · Presign</title>
</head>
<body>
<noscript>This page needs JavaScript. <a href="../openapi.json">The OpenAPI document</a> does not.</noscript>
<script>${STORAGE}</script>
<script id="api-reference" type="application/json" data-configuration="${escaped(JSON.stringify(SETTINGS))}">${JSON.stringify(document).replaceAll('<', '\\u003c')}</script>
<script src="api/scalar.js"></script>
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
  // A tag without operations has no second column.
  customCss: '.section-column:empty { display: none }',
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
 * The sandbox gives the page an opaque origin: it has no cookie and no storage of the issuer, and its requests are unauthenticated. It may
 * run Scalar and the script above, and connect to nothing. Scalar writes its styles into the page. `'self'` is the origin that the page
 * came from, also in a sandbox (CSP 3 §2.2.2).
 */
const POLICY = [
  'sandbox allow-scripts',
  "default-src 'none'",
  `script-src 'self' 'sha256-${createHash('sha256').update(STORAGE).digest('base64')}'`,
  "style-src 'unsafe-inline'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
