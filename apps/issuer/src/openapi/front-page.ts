import type { Context, Hono } from 'hono';
import { accepts } from 'hono/accepts';
import type { IssuerEnv } from '../identity/caller.ts';

type Options = {
  readonly issuerUrl: string;
  readonly consoleDir?: string | undefined;
  readonly clientPackages?: object | undefined;
};

/** `/`: where things are, as text for people with curl, as JSON for programs, and as a page for browsers. */
export function frontPage(app: Hono<IssuerEnv>, { issuerUrl, consoleDir, clientPackages }: Options): void {
  const places = {
    health: '/healthz',
    readiness: '/readyz',
    docs: '/docs/',
    api: '/docs/api',
    openapi: '/openapi.json',
    ...(consoleDir !== undefined && { console: '/console/' }),
    ...(clientPackages && { clients: '/clients/' }),
  };
  const links = Object.entries(places).map(([name, path]) => [name, `${issuerUrl}${path}`] as const);
  app.get('/', (c) => {
    c.header('vary', 'accept');
    const type = accepts(c, {
      header: 'Accept',
      supports: ['text/plain', 'text/html', 'application/json'],
      default: 'text/plain',
    });
    if (type === 'text/html') return html(c, links);
    if (type === 'application/json')
      return c.json({ service: 'presign issuer', ...Object.fromEntries(links) });
    return c.text(
      ['Presign issuer', ...links.map(([name, url]) => `${name.padEnd(10)} ${url}`), ''].join('\n'),
    );
  });
}

function html(c: Context<IssuerEnv>, links: readonly (readonly [string, string])[]): Response {
  const items = links.map(([name, url]) => `<li><a href="${escaped(url)}">${name}</a></li>`);
  return c.html(
    `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>Presign issuer</title>\n</head>\n<body>\n<h1>Presign issuer</h1>\n<ul>\n${items.join('\n')}\n</ul>\n</body>\n</html>\n`,
    200,
    {
      'content-security-policy':
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  );
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
