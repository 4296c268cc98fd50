import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { RefusedError } from '@presign/schema';
import type { Context, Hono } from 'hono';
import { pagePolicy } from '../answers/page-policy.ts';
import { type Kept, keep, onceMade, sendKept } from '../answers/send-kept.ts';
import type { IssuerEnv } from '../identity/caller.ts';
import { type Contents, markdownOf, type Page, readContents, readPage } from './contents.ts';
import { ASSETS, ROOT } from './files.ts';
import { type AssetNames, layOut } from './layout.ts';
import { addressOf } from './links.ts';
import { joinPages, listPages, markdownPage } from './llms.ts';
import { pngSize } from './png-size.ts';
import { renderPage } from './render.ts';
import { makeSearchIndex } from './search-index.ts';

/** Makes an answer on the first request for it. */
type Maker = () => Promise<Kept>;

/**
 * The guides and the reference below `/docs/`, each also as Markdown, with `/llms.txt` and `/llms-full.txt`. None needs an API key. All
 * answers are listed before one is made, so a request names one of these, and they are the most that is kept.
 */
export function serveDocs(app: Hono<IssuerEnv>, { issuerUrl }: { readonly issuerUrl: string }): void {
  const listed = onceMade(async () => {
    const makers = await listAnswers(`${issuerUrl}/docs/`);
    return new Map([...makers].map(([name, make]) => [name, onceMade(make)]));
  });
  const answer = async (c: Context<IssuerEnv>, name: string) => {
    const make = (await listed()).get(name);
    if (!make) throw new RefusedError({ code: 'not_found' });
    return sendKept(c, await make());
  };
  // Relative, so that it is right behind any prefix of the path.
  app.get('/docs', (c) => c.body(null, 308, { location: 'docs/' }));
  app.get('/docs/*', (c) => answer(c, c.req.path.slice('/docs/'.length)));
  for (const name of ['llms.txt', 'llms-full.txt']) app.get(`/${name}`, (c) => answer(c, `../${name}`));
}

/** Every answer, by its address from `/docs/`. */
async function listAnswers(docsUrl: string): Promise<ReadonlyMap<string, Maker>> {
  const contents = await readContents();
  const [style, script, icon] = await Promise.all(['site.css', 'site.js', 'icon.svg'].map(readAsset));
  if (!style || !script || !icon) throw new Error('unreachable');
  const assets: AssetNames = { style: style.name, script: script.name, icon: icon.name };
  const pictures = await listPictures();
  const text =
    (make: () => Promise<string>, type = MARKDOWN) =>
    async () =>
      keep(await make(), { 'content-type': type });
  return new Map<string, Maker>([
    ...contents.pages.flatMap((page): [string, Maker][] => [
      [page.route, () => htmlPage(page, contents, assets)],
      [markdownOf(page.route), text(() => markdownPage(page, contents))],
    ]),
    ['../llms.txt', text(async () => listPages(contents, docsUrl))],
    ['../llms-full.txt', text(() => joinPages(contents, docsUrl))],
    ['search.json', text(async () => JSON.stringify(await makeSearchIndex(contents)), 'application/json')],
    ...[style, script, icon].map(({ name, bytes }): [string, Maker] => [
      name,
      () => keep(bytes, FOREVER(name)),
    ]),
    ...pictures.map((name): [string, Maker] => [
      name,
      async () => keep(await readFile(pictureUrl(name)), typed(name)),
    ]),
  ]);
}

async function htmlPage(page: Page, contents: Contents, assets: AssetNames): Promise<Kept> {
  const sizes = new Map<string, ReturnType<typeof pngSize>>();
  const address = (link: string) => addressOf(link, page, contents);
  const markdown = await readPage(page);
  for (const [, link = ''] of markdown.matchAll(/!\[[^\]]*\]\(([\w./-]+\.png)\)/g))
    sizes.set(
      address(link) ?? '',
      pngSize(await readFile(new URL(posix.join(posix.dirname(page.file), link), ROOT))),
    );
  const rendered = await renderPage(markdown, { address, size: (picture) => sizes.get(picture) });
  return keep(layOut(page, rendered, contents, assets), {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': pagePolicy(),
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    // RFC 8288 §3: relative to the page.
    link: `<${posix.basename(markdownOf(page.route))}>; rel="alternate"; type="text/markdown"`,
  });
}

const MARKDOWN = 'text/markdown; charset=utf-8';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};
const typed = (name: string) => ({ 'content-type': TYPES[posix.extname(name)] ?? '' });

/** For what has a hash of its content in its name. */
const FOREVER = (name: string) => ({
  ...typed(name),
  'cache-control': 'public, max-age=31536000, immutable',
});

async function readAsset(file: string): Promise<{ readonly name: string; readonly bytes: Buffer }> {
  const bytes = await readFile(new URL(file, ASSETS));
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 8);
  return { name: file.replace('.', `-${hash}.`), bytes };
}

const pictureUrl = (name: string) => new URL(`docs/${name}`, ROOT);

const listPictures = async (): Promise<string[]> => [
  'performance.svg',
  ...(await readdir(pictureUrl('images/')))
    .filter((name) => name.endsWith('.png'))
    .map((name) => `images/${name}`),
];
