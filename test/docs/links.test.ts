import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NOT_OURS = new Set(['node_modules', 'dist', 'coverage']);

const files = filesIn('');
const pages = new Map(
  files.filter((file) => file.endsWith('.md')).map((file) => [file, readFileSync(join(ROOT, file), 'utf8')]),
);

test('the pages of the project are found', () => {
  const wanted = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'];
  expect([...pages.keys()]).toEqual(expect.arrayContaining(wanted));
});

test.each([...pages.keys()])(
  'every link of %s to a file, and to a heading in a page, has a target',
  (file) => {
    const dead = linksOf(pages.get(file) ?? '').filter((link) => !leadsSomewhere(file, link));
    expect(dead).toEqual([]);
  },
);

test.each([...pages.keys()])('every file and folder of the project that %s names exists', (file) => {
  const page = pages.get(file) ?? '';
  expect(namedFiles(page).filter((name) => !isFile(name))).toEqual([]);
  expect([...namedPaths(page), ...treePaths(page)].filter((path) => !existsSync(join(ROOT, path)))).toEqual(
    [],
  );
});

test('the tree of ARCHITECTURE.md has one line for every app and package and every folder of their source', () => {
  const folders = new Set(
    files.flatMap((file) => {
      const [, member = '', below = ''] =
        /^((?:apps|packages)\/[^/]+)\/src\/(?:(.+)\/)?[^/]+$/.exec(file) ?? [];
      const names = below === '' ? [] : below.split('/');
      const within = names.map((_, i) => join(member, 'src', ...names.slice(0, i + 1)));
      return member === '' ? [] : [member, ...within];
    }),
  );
  const lines = treeLines(pages.get('ARCHITECTURE.md') ?? '');
  const named = lines.flatMap(({ paths }) => paths);
  expect(named.filter((path, i) => named.indexOf(path) !== i)).toEqual([]);
  const isAt = (path: string, folder: string) => path === folder || path.startsWith(`${folder}/`);
  // The line of a folder may name those in it.
  const isSaid = (folder: string) =>
    lines.some(({ paths, says }) => paths.includes(dirname(folder)) && says.includes(`${basename(folder)}/`));
  const unnamed = [...folders].filter((each) => !named.some((path) => isAt(path, each)) && !isSaid(each));
  expect(unnamed).toEqual([]);
});

test('every function that ARCHITECTURE.md names is in the source, and in the file that it names with it', () => {
  const page = pages.get('ARCHITECTURE.md') ?? '';
  const named = Array.from(page.matchAll(/`([a-z]+[A-Z]\w+)`(?:\s+in\s+`([\w./-]+\.ts)`)?/g));
  expect(named.length).toBeGreaterThan(10);
  const sources = files.filter((file) => /^(apps|packages)\/[^/]+\/src\/.*\.ts$/.test(file));
  const isThere = (name: string, end = '.ts') =>
    sources
      .filter((file) => `/${file}`.endsWith(end === '.ts' ? end : `/${end}`))
      .some((file) => new RegExp(`\\b${name}\\b`).test(readFileSync(join(ROOT, file), 'utf8')));
  expect(named.filter(([, name = '', file]) => !isThere(name, file)).map(([text]) => text)).toEqual([]);
});

test('a dead link or name is detected', () => {
  expect(leadsSomewhere('README.md', 'nothing.md')).toBe(false);
  expect(leadsSomewhere('README.md', '#no-such-heading')).toBe(false);
  expect(leadsSomewhere('docs/reference/errors.md', '../../README.md#try-it')).toBe(true);
  expect(namedFiles('As `llm/no-such.ts` does.').some(isFile)).toBe(false);
  expect(namedPaths('See `packages/none` and `packages/schema/src`.')).toEqual([
    'packages/none',
    'packages/schema/src',
  ]);
  const tree = '```\napps/gateway/src\n  llm/\n    call.ts plan.ts   the story\nbench   measurements\n```';
  expect(treePaths(tree)).toEqual([
    'apps/gateway/src',
    'apps/gateway/src/llm',
    'apps/gateway/src/llm/call.ts',
    'apps/gateway/src/llm/plan.ts',
    'bench',
  ]);
});

function leadsSomewhere(from: string, link: string): boolean {
  if (/^[a-z]+:/.test(link)) return true;
  const [path = '', heading] = link.split('#');
  const file = path === '' ? from : join(dirname(from), path);
  if (!existsSync(join(ROOT, file))) return false;
  return heading === undefined || headingsOf(pages.get(file) ?? '').includes(heading);
}

/** Source files named in running text, by their path from the root or its end: `apps/gateway/src/admit.ts`, `admit.ts`. */
const namedFiles = (page: string): string[] =>
  Array.from(
    withoutFences(page).matchAll(/`([a-z][a-z0-9./-]*\.(?:ts|lua|md|yaml))`/g),
    ([, name]) => name ?? '',
  );

/** Files and folders named by their path from the root. */
const namedPaths = (page: string): string[] =>
  Array.from(
    withoutFences(page).matchAll(
      /`((?:apps|bench|docs|examples|infra|packages|patches|test|\.ci)\/[a-z0-9./_-]*)`/g,
    ),
    ([, path]) => path ?? '',
  );

/** The paths in the trees of a page. */
const treePaths = (page: string): string[] => treeLines(page).flatMap(({ paths }) => paths);

/**
 * The lines of the trees of a page: fences without a language. Two spaces indent a level, and separate names from what is
 * said about them.
 */
function treeLines(page: string): { readonly paths: readonly string[]; readonly says: string }[] {
  const trees = Array.from(page.matchAll(/^```\n((?:apps|packages)\/.*?)^```$/gms), ([, tree = '']) => tree);
  return trees.flatMap((tree) => {
    const above: string[] = [];
    return tree.split('\n').flatMap((line) => {
      const [names = '', says = ''] = line.trim().split(/ {2,}/);
      if (names === '') return [];
      const level = line.search(/\S/) / 2;
      const paths = names.split(' ').map((name) => join(...above.slice(0, level), name).replace(/\/$/, ''));
      above[level] = names.split(' ')[0] ?? '';
      return [{ paths, says }];
    });
  });
}

const isFile = (name: string): boolean => files.some((file) => `/${file}`.endsWith(`/${name}`));

/** Targets of inline links outside of code. */
const linksOf = (page: string): string[] =>
  Array.from(withoutCode(page).matchAll(/\]\(([^()\s]+)\)/g), ([, link]) => link ?? '');

/** Headings as GitHub names them in an address. */
const headingsOf = (page: string): string[] =>
  Array.from(withoutFences(page).matchAll(/^#+ (.+)$/gm), ([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

const withoutFences = (page: string): string => page.replace(/^```.*?^```$/gms, '');
const withoutCode = (page: string): string => withoutFences(page).replace(/`[^`\n]*`/g, '');

function filesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return NOT_OURS.has(entry.name) || entry.name.startsWith('.') ? [] : filesIn(path);
  });
}
