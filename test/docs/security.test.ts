import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const page = readFileSync(new URL('SECURITY.md', ROOT), 'utf8');

/** A link to a test: its file, and in the link's title the name of the test. */
const TEST_LINK = /\]\((\S+\.test\.ts) "([^)]+)"\)/g;

const bullets = ['Promised', 'Not promised'].flatMap((heading) =>
  bulletsOf(heading).map((bullet) => ({
    name: /\*\*(.+?)\*\*/s.exec(bullet)?.[1]?.replace(/\s+/g, ' ') ?? bullet,
    links: Array.from(bullet.matchAll(TEST_LINK), ([, file = '', title = '']) => ({ file, title })),
  })),
);

test('the page has promises and non-promises', () => {
  expect(bulletsOf('Promised').length).toBeGreaterThan(10);
  expect(bulletsOf('Not promised').length).toBeGreaterThan(10);
});

test.each(bullets)('"$name" links to a test that exists', ({ links }) => {
  expect(links).not.toEqual([]);
  expect(links.filter((link) => !isTest(link))).toEqual([]);
});

test('each attack links to a test that exists', () => {
  const links = Array.from((page.split(/^## Attacks$/m)[1] ?? '').matchAll(TEST_LINK));
  const rows = (page.split(/^## Attacks$/m)[1] ?? '').split('\n').filter((line) => line.startsWith('| '));
  expect(links.length).toBeGreaterThanOrEqual(rows.length - 2);
  expect(links.filter(([, file = '', title = '']) => !isTest({ file, title }))).toEqual([]);
});

test('a test that does not exist is noticed', () => {
  expect(isTest({ file: 'test/e2e/no-such.test.ts', title: 'limits' })).toBe(false);
  expect(isTest({ file: 'test/e2e/limits.test.ts', title: 'no such test' })).toBe(false);
});

function bulletsOf(heading: string): readonly string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return section
    .split(/^### .*$/m)
    .flatMap((part) => part.split(/^- /m).slice(1))
    .filter((bullet) => bullet.trim() !== '');
}

/** Whether the file names a test so: as a whole text, in any quotes. */
function isTest({ file, title }: { readonly file: string; readonly title: string }): boolean {
  const url = new URL(file, ROOT);
  if (!existsSync(url)) return false;
  const source = readFileSync(url, 'utf8').replaceAll("\\'", "'");
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`));
}
