import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import type { OpenApi } from './describe-api.ts';
import { describeGateway, GATEWAY_PAGES } from './describe-gateway.ts';

/** A page of the documentation, which Scalar shows as a tag of the OpenAPI document. */
type Page = { readonly path: string; readonly name: string; readonly text: string };

type Group = { readonly name: string; readonly pages: readonly string[] };

/**
 * The document of `/docs`: the issuer's own, the routes of the gateway, and README and docs as tags with no operations. Each page is
 * read from the file that has it, so that no text is written twice.
 */
export async function describeDocs(api: OpenApi, gatewayUrl: string): Promise<object> {
  const groups = await findPages();
  const pages = await Promise.all(groups.flatMap((group) => group.pages).map(readPage));
  const names = new Map(pages.map(({ path, name }) => [path, name]));
  const tags = [...api.tags, ...pages.map((page) => ({ name: page.name, description: linked(page, names) }))];
  if (new Set(tags.map(({ name }) => name)).size < tags.length) throw new Error('two pages have one title');
  const tagGroups = groups.map(({ name, pages: paths }) => ({
    name,
    tags: paths.map((path) => names.get(path)),
  }));
  const issuer = { name: 'Issuer API', tags: api.tags.map(({ name }) => name) };
  return {
    ...api,
    tags,
    paths: { ...api.paths, ...describeGateway(gatewayUrl) },
    'x-tagGroups': [...tagGroups.slice(0, 2), issuer, ...tagGroups.slice(2)],
  };
}

/** The groups of the navigation. Guides and reference have the order of docs/README.md. */
async function findPages(): Promise<Group[]> {
  const index = await readFile(new URL('docs/README.md', ROOT), 'utf8');
  const linked = Array.from(
    index.matchAll(/\]\(((?:guides|reference)\/[\w/.-]+\.md)\)/g),
    ([, path]) => `docs/${path}`,
  );
  const inFolder = async (folder: string) =>
    (await readdir(new URL(folder, ROOT))).sort().map((name) => `${folder}${name}`);
  const start = [QUICKSTART, AUTHENTICATION];
  const gateway = Object.keys(GATEWAY_PAGES);
  const others = linked.filter((path) => ![...start, ...gateway].includes(path));
  return [
    { name: 'Get started', pages: start },
    { name: 'Gateway', pages: gateway },
    { name: 'Guides', pages: others.filter((path) => /^docs\/guides\/[^/]+$/.test(path)) },
    { name: 'Clients', pages: await inFolder('docs/guides/clients/') },
    { name: 'Operate', pages: await inFolder('docs/guides/operate/') },
    { name: 'Reference', pages: others.filter((path) => path.startsWith('docs/reference/')) },
  ];
}

const QUICKSTART = 'README.md';
const AUTHENTICATION = 'docs/guides/api-keys.md';

/** Pages whose title in the navigation is not their own. */
const NAMES: Readonly<Record<string, string>> = {
  [QUICKSTART]: 'Quickstart',
  [AUTHENTICATION]: 'Authentication',
  ...GATEWAY_PAGES,
};

async function readPage(path: string): Promise<Page> {
  const whole = await readFile(new URL(path, ROOT), 'utf8');
  const section = path === QUICKSTART ? (/^## Try it\n([\s\S]*?)^## /m.exec(whole)?.[1] ?? '') : whole;
  const [, title = '', text = section] = /^# (.*)\n([\s\S]*)$/.exec(section) ?? [];
  return { path, name: NAMES[path] ?? title, text: text.trim() };
}

/**
 * The text of a page with links that lead to tags. A link to a file that `/docs` does not have loses its address, and pictures go: the
 * page loads none. Headings move down a level, below the name of the tag.
 */
const linked = ({ path, text }: Page, names: ReadonlyMap<string, string>): string =>
  text
    .split(/(^ *```[\s\S]*?^ *```)/m)
    .map((piece, i) => (i % 2 ? piece : withLinks(piece, path, names).replace(/^##/gm, '###')))
    .join('');

const withLinks = (text: string, from: string, names: ReadonlyMap<string, string>): string =>
  text
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/\[([^\]]*)\]\(([^)\s]+)\)/g, (whole, label: string, link: string) => {
      if (/^https?:/.test(link)) return whole;
      const [file = ''] = link.split('#');
      const path = file === '' ? from : posix.join(posix.dirname(from), file);
      if (path === 'docs/reference/openapi.json') return `[${label}](openapi.json)`;
      const name = names.get(path);
      return name === undefined ? label : `[${label}](#tag/${slug(name)})`;
    });

/** The address that Scalar gives to a tag. */
const slug = (name: string) =>
  name
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replaceAll(' ', '-');

/** What `infra/docker/bundle.mjs` puts next to the bundled code. Without it, the files are read where the repository has them. */
const BUNDLED = new URL('./docs-files/', import.meta.url);
const isBundled = existsSync(BUNDLED);

/** The one file of Scalar that a page needs. */
export const SCALAR = isBundled
  ? new URL('scalar.js', BUNDLED)
  : new URL('../../node_modules/@scalar/api-reference/dist/browser/standalone.js', import.meta.url);

/** The folder that has README.md and docs. */
const ROOT = isBundled ? BUNDLED : new URL('../../../../', import.meta.url);
