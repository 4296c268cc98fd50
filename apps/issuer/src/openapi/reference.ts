import type { Hono } from 'hono';
import type { IssuerDeps, IssuerEnv } from '../deps.ts';
import { describeApi, type OpenApi } from './describe-api.ts';
import { DOCS_POLICY, docsPage } from './docs-page.ts';

/** `/openapi.json`: the API's document. `/docs`: the same as a page to read. Neither needs an API key. */
export function reference(app: Hono<IssuerEnv>, { issuerUrl }: IssuerDeps): void {
  // Made when first asked for: few issuers are.
  let made: OpenApi | undefined;
  const api = () => {
    made ??= describeApi(issuerUrl);
    return made;
  };
  app.get('/openapi.json', (c) => c.json(api()));
  app.get('/docs', (c) => {
    c.header('content-security-policy', DOCS_POLICY);
    return c.html(docsPage(api()));
  });
}
