import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
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
  'every link of %s to a file, and to a heading in a page, leads somewhere',
  (file) => {
    const dead = linksOf(pages.get(file) ?? '').filter((link) => !leadsSomewhere(file, link));
    expect(dead).toEqual([]);
  },
);

test.each([...pages.keys()])('every source file that %s names exists', (file) => {
  expect(namedFiles(pages.get(file) ?? '').filter((name) => !isFile(name))).toEqual([]);
});

test('a dead link or name is noticed', () => {
  expect(leadsSomewhere('README.md', 'nothing.md')).toBe(false);
  expect(leadsSomewhere('README.md', '#no-such-heading')).toBe(false);
  expect(leadsSomewhere('docs/reference/errors.md', '../../README.md#try-it')).toBe(true);
  expect(namedFiles('As `llm/no-such.ts` does.').some(isFile)).toBe(false);
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
