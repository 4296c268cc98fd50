import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { ROOT } from './files.ts';

/** A page of the documentation. */
export type Page = {
  /** Its file, from the root of the repository. */
  readonly file: string;
  /** Its address below `/docs/`. */
  readonly route: string;
  /** Its name in the navigation. */
  readonly name: string;
  /** The text after its link: the need of a reader, or the content of the page. */
  readonly about: string;
};

/** A heading of docs/README.md with its lists: the guides, and then those with a name of their own. */
export type Group = {
  readonly name: string;
  readonly lists: readonly { readonly kind: string; readonly pages: readonly Page[] }[];
};

export type Contents = {
  readonly groups: readonly Group[];
  /** In the order of the navigation, the contents first. */
  readonly pages: readonly Page[];
  /** Where each file of the repository that a page may link to is served, from `/docs/`. */
  readonly routes: ReadonlyMap<string, string>;
};

const CONTENTS = 'docs/README.md';

/** The OpenAPI document is a row of the contents, too. It has a page that is made in another way. */
export const OPENAPI = 'docs/reference/openapi.json';

/** Reads the contents: docs/README.md has each page once, in a list below the heading of its group. */
export async function readContents(): Promise<Contents> {
  const groups = groupsOf(await readFile(new URL(CONTENTS, ROOT), 'utf8'));
  const listed = groups.flatMap(({ lists }) => lists.flatMap(({ pages }) => pages));
  const pages = [
    { file: CONTENTS, route: '', name: 'Contents', about: '' },
    ...listed.filter(({ file }) => file !== OPENAPI),
  ];
  return {
    groups,
    pages,
    routes: new Map([...pages, ...listed].map(({ file, route }) => [file, route])),
  };
}

const groupsOf = (markdown: string): Group[] =>
  markdown
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      name: section.split('\n', 1)[0] ?? '',
      lists: Array.from(section.matchAll(LIST), ([, kind = '', lines = '']) => ({
        kind,
        pages: Array.from(lines.matchAll(LINE), ([, name = '', link = '', about = '']) => {
          const file = posix.join(posix.dirname(CONTENTS), link);
          return { file, route: routeOf(file), name, about };
        }),
      })).filter(({ pages }) => pages.length > 0),
    }));

const LIST = /(?:^\*\*(\w+)\*\*\n\n)?((?:^- .*\n?)+)/gm;
const LINE = /^- \[([^\]]+)\]\(([\w./-]+)(?:#[\w-]+)?\): (.*)$/gm;

/** Pages whose files are not in `docs`, and the API. */
const ROUTES: Readonly<Record<string, string>> = {
  [OPENAPI]: 'api',
  'README.md': 'quickstart',
  'SECURITY.md': 'security',
  'CHANGELOG.md': 'changelog',
  'packages/providers/README.md': 'providers',
};

const routeOf = (file: string): string => ROUTES[file] ?? file.replace(/^docs\//, '').replace(/\.md$/, '');

/** The file of a page as Markdown, from `/docs/`. */
export const markdownOf = (route: string): string => `${route || 'index'}.md`;

/** The Markdown of a page. The quickstart is a section of README.md. */
export async function readPage({ file, route }: Page): Promise<string> {
  const whole = await readFile(new URL(file, ROOT), 'utf8');
  if (route !== 'quickstart') return whole;
  const section = /^## Try it\n[\s\S]*?(?=^## )/m.exec(whole)?.[0];
  if (section === undefined) throw new Error(`${file} has no section "Try it"`);
  return section.replace(/^#(?=#* )/gm, '');
}
