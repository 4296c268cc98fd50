import { readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { RefusedError } from '@presign/schema';
import { Hono } from 'hono';
import { beforeAll, describe, expect, test } from 'vitest';
import type { SearchIndex } from '../src/docs/search-index.ts';
import { serveDocs } from '../src/docs/serve-docs.ts';

const ORIGIN = 'https://issuer.example';
const app = new Hono();
serveDocs(app as never, { issuerUrl: ORIGIN });
app.onError((error, c) =>
  error instanceof RefusedError ? c.text(error.message, 404) : c.text(String(error), 500),
);
// The page of the API is another route of the issuer, and so is its document.
const OTHERS = ['/docs/api', '/openapi.json'];

const ask = (address: string, headers: Record<string, string> = {}) =>
  Promise.resolve(app.request(address, { headers }));

/** The addresses that a page loads or leads to. */
const linksIn = (html: string) =>
  Array.from(
    html.matchAll(/<(?:a|link|script|img)\b[^>]*? (?:href|src)="([^"]*)"/g),
    ([, link = '']) => link,
  );
const idsIn = (html: string) => new Set(Array.from(html.matchAll(/ id="([^"]*)"/g), ([, id]) => id));

/** Every page that can be reached from the contents, by its address. */
const pages = new Map<string, string>();
beforeAll(async () => {
  const waiting = [`${ORIGIN}/docs/`];
  for (const address of waiting) {
    if (pages.has(address)) continue;
    const answer = await ask(address);
    if (!answer.headers.get('content-type')?.startsWith('text/html')) continue;
    const html = await answer.text();
    pages.set(address, html);
    const links = linksIn(html).map((link) => new URL(link, address));
    waiting.push(
      ...links.filter(({ origin }) => origin === ORIGIN).map(({ origin, pathname }) => origin + pathname),
    );
  }
});

test('every page in docs, and every other page that readers need, is linked from the contents', () => {
  const files = ['guides', 'reference', 'adr'].flatMap((folder) =>
    readdirSync(new URL(`../../../docs/${folder}`, import.meta.url), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name.replace('.md', '')}`),
  );
  const routes = ['', 'quickstart', 'security', 'changelog', 'providers', ...files];
  expect([...pages.keys()].sort()).toEqual(routes.map((route) => `${ORIGIN}/docs/${route}`).sort());
});

test('every link of every page leads to an existing page and heading', async () => {
  const statuses = new Map<string, number>();
  const dead: string[] = [];
  for (const [from, html] of pages)
    for (const link of new Set(linksIn(html))) {
      const { origin, pathname, hash } = new URL(link, from);
      if (origin !== ORIGIN || OTHERS.includes(pathname)) continue;
      if (!statuses.has(pathname)) statuses.set(pathname, (await ask(pathname)).status);
      const target = pages.get(origin + pathname);
      const isThere =
        hash === '' || (target !== undefined && idsIn(target).has(decodeURIComponent(hash.slice(1))));
      if (statuses.get(pathname) !== 200 || !isThere) dead.push(`${from}: ${link}`);
    }
  expect(dead).toEqual([]);
  expect(statuses.size).toBeGreaterThan(150);
});

test('every page links to the previous page, the next page and its Markdown, and is in its own navigation', async () => {
  const order = ['/docs/'];
  for (;;) {
    const at = `${ORIGIN}${order.at(-1)}`;
    const html = pages.get(at) ?? '';
    const linked = (rel: string) => {
      const link = new RegExp(`<a rel="${rel}" href="([^"]*)"`).exec(html)?.[1];
      return link === undefined ? undefined : new URL(link, at).pathname;
    };
    expect(linked('prev')).toBe(order.at(-2));
    expect(html.match(/aria-current="page"/g)?.length ?? 0).toBe(order.length > 1 ? 1 : 0);
    const answer = await ask(at);
    const [, markdown = ''] =
      /^<([^>]+)>; rel="alternate"; type="text\/markdown"$/.exec(answer.headers.get('link') ?? '') ?? [];
    expect((await ask(new URL(markdown, at).href)).headers.get('content-type')).toBe(
      'text/markdown; charset=utf-8',
    );
    const next = linked('next');
    if (next === undefined) break;
    order.push(next);
  }
  expect(order).toHaveLength(pages.size);
});

test('the groups of the navigation equal those of the contents', () => {
  const html = pages.get(`${ORIGIN}/docs/guides/revoke-a-url`) ?? '';
  const nav = /<nav class="pages"[\s\S]*?<\/nav>/.exec(html)?.[0] ?? '';
  expect(Array.from(nav.matchAll(/<summary>([^<]*)/g), ([, name]) => name)).toEqual([
    ...['All pages', 'Start', 'Issue', 'Limit', 'Use', 'Bill', 'Operate', 'Decisions'],
  ]);
  // One group is open, that of the page.
  expect(/<details open><summary>([^<]*)/.exec(nav)?.[1]).toBe('Issue');
  expect(nav.match(/<details open>/g)).toHaveLength(1);
});

describe('a page', () => {
  const GUIDE = '/docs/guides/console';

  test('needs no script: it has no inline script or style, and nothing from another server', async () => {
    for (const [address, html] of pages) {
      expect(html.match(/<script/g), address).toEqual(['<script']);
      expect(html, address).not.toMatch(/<style|<iframe|<form|\son\w+=|\sstyle=|javascript:/);
      const loaded = Array.from(
        html.matchAll(/<(?:script|img|link)\b[^>]*? (?:src|href)="([^"]*)"/g),
        ([, link = '']) => link,
      );
      expect(
        loaded.filter((link) => /^(\w+:|\/)/.test(link)),
        address,
      ).toEqual([]);
    }
  });

  test('has a content security policy that allows only files of the issuer', async () => {
    const { headers } = await ask(GUIDE);
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(headers.has('set-cookie')).toBe(false);
  });

  test('reserves the space of its images, and names them', () => {
    const pictures = pages.get(ORIGIN + GUIDE)?.match(/<img [^>]*>/g) ?? [];
    expect(pictures.length).toBeGreaterThan(5);
    for (const each of pictures)
      expect(each).toMatch(
        /^<img src="\.\.\/images\/[\w-]+\.png" alt="[^"]{10,}" width="\d+" height="\d+" loading="lazy">$/,
      );
  });

  test('is revalidated, and is not sent again while it is unchanged', async () => {
    const first = await ask(GUIDE);
    const etag = first.headers.get('etag') ?? '';
    expect(first.headers.get('cache-control')).toBe('no-cache');
    for (const known of [etag, `"other", ${etag}`, '*']) {
      const again = await ask(GUIDE, { 'if-none-match': known });
      expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    }
    expect((await ask(GUIDE, { 'if-none-match': 'W/"other"' })).status).toBe(200);
    expect((await ask('/docs/guides/revoke-a-url')).headers.get('etag')).not.toBe(etag);
  });

  test('is the same with gzip and without', async () => {
    const [zipped, plain] = [await ask(GUIDE, { 'accept-encoding': 'gzip' }), await ask(GUIDE)];
    expect([zipped.headers.get('content-encoding'), plain.headers.get('content-encoding')]).toEqual([
      'gzip',
      null,
    ]);
    const unzipped = zipped.body?.pipeThrough(new DecompressionStream('gzip'));
    expect(await new Response(unzipped).text()).toBe(await plain.text());
  });

  test('links style and script by names that change with their content, so that browsers cache them', async () => {
    const links = linksIn(pages.get(ORIGIN + GUIDE) ?? '').filter((link) => /\.(css|js|svg)$/.test(link));
    expect(links).toHaveLength(3);
    for (const link of links) {
      expect(link).toMatch(/-[0-9a-f]{8}\.\w+$/);
      const { headers } = await ask(new URL(link, ORIGIN + GUIDE).href);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    }
  });

  test.each([
    '/docs/none',
    '/docs/guides',
    '/docs/guides/',
    '/docs/../package.json',
    '/docs/%2e%2e/package.json',
    '/docs/..%2fpackage.json',
    '/docs/images',
    '/docs/constructor',
    '/docs/../llms.txt/x',
    '/docs/README.md',
  ])('%s is not a page', async (path) => {
    expect((await ask(path)).status).toBe(404);
  });
});

describe('for agents', () => {
  test('llms.txt lists the Markdown of every page, and the OpenAPI document', async () => {
    const text = await (await ask('/llms.txt')).text();
    expect(text).toMatch(/^# Presign\n\n> Presign issues [^\n]+\n\n## Start\n/);
    const links = Array.from(text.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S/gm), ([, link = '']) => link);
    const others = links.filter((link) => link !== `${ORIGIN}/openapi.json`);
    expect([links.length, others.length]).toEqual([pages.size, pages.size - 1]);
    for (const link of others) expect([link, (await ask(link)).status]).toEqual([link, 200]);
  });

  test('the Markdown of a page links only to Markdown, the OpenAPI document, images and other sites', async () => {
    let checked = 0;
    for (const address of pages.keys()) {
      const own = address.endsWith('/') ? `${address}index.md` : `${address}.md`;
      const markdown = (await (await ask(own)).text()).replace(/^ *```[\s\S]*?^ *```|`[^`\n]*`/gm, 'x');
      for (const [, link = ''] of markdown.matchAll(/\]\(([^)\s]+)\)/g)) {
        const { origin, pathname } = new URL(link, own);
        if (origin !== ORIGIN || OTHERS.includes(pathname)) continue;
        checked += 1;
        expect(posix.extname(pathname), `${own}: ${link}`).toMatch(/^\.(md|png|svg)$/);
        expect([own, link, (await ask(pathname)).status]).toEqual([own, link, 200]);
      }
    }
    expect(checked).toBeGreaterThan(300);
  });

  test('llms-full.txt contains every page, below its address', async () => {
    const text = await (await ask('/llms-full.txt')).text();
    const addresses = Array.from(text.matchAll(/^<!-- (https:\S+) -->$/gm), ([, address]) => address);
    const wanted = [...pages.keys()]
      .filter((address) => !address.endsWith('/'))
      .map((address) => `${address}.md`);
    expect(addresses.sort()).toEqual(wanted.sort());
    expect(text).toContain(`](${ORIGIN}/docs/reference/errors.md)`);
  });
});

test('the search index has the sections of all pages as plain text, each with an existing anchor', async () => {
  const answer = await ask('/docs/search.json');
  expect(answer.headers.get('content-type')).toBe('application/json');
  const index = (await answer.json()) as SearchIndex;
  expect(index.pages).toHaveLength(pages.size - 1);
  expect(index.sections.length).toBeGreaterThan(400);
  const ids = new Map(
    index.pages.map(([route]) => [route, idsIn(pages.get(`${ORIGIN}/docs/${route}`) ?? '')]),
  );
  for (const [page, id, heading, text] of index.sections) {
    const [route] = index.pages[page] ?? [''];
    if (id !== '') expect(ids.get(route)?.has(id), `${route}#${id}`).toBe(true);
    expect([heading, text].join(' '), `${route}#${id}`).not.toMatch(
      /\]\((?:\.\.\/|#|http)|```|\|\s*-{3}|<!--|\*\*\w/,
    );
  }
  const revoke = index.sections.find(
    ([page, id]) => index.pages[page]?.[0] === 'guides/revoke-a-url' && id === '',
  );
  expect(revoke?.[3]).toMatch(/^Send DELETE for a grant, a session, .* DELETE \/v1\/grants\/\{id\} /);
});
