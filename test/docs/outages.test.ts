import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../docs/reference/', import.meta.url);
const page = readFileSync(new URL('outages.md', ROOT), 'utf8');

/** A link to a test: its file, and in the link's title how the name of the test begins. */
const TEST_LINK = /\]\((\S+\.test\.ts) "([^"]+)"\)/g;

const [, , ...rows] = page.split('\n').filter((line) => line.startsWith('|'));
const outages = rows
  .filter((row) => !/^\| (-|Outage)/.test(row))
  .map((row) => {
    const [, name = '', , recovers = ''] = row.split('|').map((cell) => cell.trim());
    return { name, recovers, links: [...row.matchAll(TEST_LINK)] };
  });

test('the page has outages', () => {
  expect(outages.length).toBeGreaterThan(15);
});

test.each(outages)('"$name" links to a test that exists', ({ links }) => {
  expect(links).not.toEqual([]);
  expect(links.filter(([, file = '', title = '']) => !isTest(file, title))).toEqual([]);
});

test.each(outages)('"$name" says how long its recovery takes, or that nothing is refused', ({ recovers }) => {
  expect(recovers).toMatch(/^–$|\d s\b|^as |^`REDIS_/);
});

test('each cell of the table of socket protocols links to a test that exists', () => {
  const sockets = readFileSync(new URL('sockets.md', ROOT), 'utf8');
  const [table = ''] = sockets.split('## Both protocols').slice(1, 2);
  const [, , ...rows] = (table.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('|'));
  expect(rows.length).toBeGreaterThan(7);
  for (const row of rows) {
    const links = [...row.matchAll(TEST_LINK)];
    expect(links, row).toHaveLength(2);
    expect(links.filter(([, file = '', title = '']) => !isTest(file, title))).toEqual([]);
  }
});

test('a test that does not exist is noticed', () => {
  expect(isTest('../../test/gateway/no-such.test.ts', 'limits')).toBe(false);
  expect(isTest('../../test/gateway/leases.test.ts', 'no such test')).toBe(false);
  expect(isTest('../../test/outages/stores.long.test.ts', 'while')).toBe(false);
});

/** Whether the file has exactly one test whose name begins so, in any quotes. */
function isTest(file: string, start: string): boolean {
  const url = new URL(file, ROOT);
  if (!existsSync(url)) return false;
  const source = readFileSync(url, 'utf8');
  const found = ["'", '"', '`'].flatMap((quote) => source.split(`${quote}${start}`).slice(1));
  return found.length === 1 && !/^\w/.test(found[0] ?? '');
}
