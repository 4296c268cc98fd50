import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const pageOf = (name: string) => readFileSync(new URL(`docs/reference/${name}.md`, ROOT), 'utf8');

/** The tests of each row, by its name. Each is `its file > how its title begins`. */
type Tests = Readonly<Record<string, readonly string[]>>;
const known: { readonly outages: Readonly<Record<string, Tests>>; readonly sockets: Tests } = JSON.parse(
  readFileSync(new URL('docs/outage-tests.json', ROOT), 'utf8'),
);

const outages = sectionsOf(pageOf('outages')).flatMap(({ heading, rows }) =>
  rows.map((row) => ({ ...row, heading, tests: known.outages[heading]?.[row.name] ?? [] })),
);

test('the page has outages, and each test belongs to one of them', () => {
  expect(outages.length).toBeGreaterThan(15);
  const rows = outages.map(({ heading, name }) => `${heading}: ${name}`);
  const listed = Object.entries(known.outages).flatMap(([heading, tests]) =>
    Object.keys(tests).map((name) => `${heading}: ${name}`),
  );
  expect(listed.sort()).toEqual(rows.sort());
});

test.each(outages)('"$name" ($heading) links to the files of tests that exist', ({ links, tests }) => {
  expectTests(links, tests);
});

test.each(outages)(
  '"$name" ($heading) says how long its recovery takes, or that nothing is refused',
  ({ recovers }) => {
    expect(recovers).toMatch(/^–$|\d s\b|^as |^`REDIS_/);
  },
);

test('each row of both socket protocols links to a test of each', () => {
  const rows = sectionsOf(pageOf('sockets')).find(({ heading }) => heading === 'Both protocols')?.rows ?? [];
  expect(rows.length).toBeGreaterThan(7);
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(known.sockets));
  for (const { name, links } of rows) {
    expect(links, name).toHaveLength(2);
    expectTests(links, known.sockets[name] ?? []);
  }
});

test('a test that does not exist is detected', () => {
  expect(isTest('test/gateway/no-such.test.ts > limits')).toBe(false);
  expect(isTest('test/gateway/leases.test.ts > no such test')).toBe(false);
  expect(isTest('test/outages/stores.long.test.ts > while')).toBe(false);
});

function expectTests(links: readonly string[], tests: readonly string[]): void {
  expect(tests).not.toEqual([]);
  expect(links).toEqual(tests.map((each) => each.split(' > ', 1)[0]));
  expect(tests.filter((each) => !isTest(each))).toEqual([]);
}

/** The rows of the tables below each heading, with the files of tests that they link to. */
function sectionsOf(page: string) {
  return page.split(/^## /m).map((section) => {
    const [heading = '', ...lines] = section.split('\n');
    const [, , ...rows] = lines.filter((line) => line.startsWith('|'));
    return { heading, rows: rows.map(rowOf) };
  });
}

function rowOf(line: string) {
  const [, name = '', , recovers = ''] = line.split('|').map((cell) => cell.trim());
  const links = Array.from(line.matchAll(/\]\((?:\.\.\/)+(\S+\.test\.ts)\)/g), ([, file = '']) => file);
  return { name: name.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'), recovers, links };
}

/** Whether the file has exactly one test whose title begins so, in any quotes. */
function isTest(named: string): boolean {
  const [file = '', start = ''] = named.split(/ > (.*)/s);
  const url = new URL(file, ROOT);
  if (!existsSync(url)) return false;
  const source = readFileSync(url, 'utf8');
  const found = ["'", '"', '`'].flatMap((quote) => source.split(`${quote}${start}`).slice(1));
  return found.length === 1 && !/^\w/.test(found[0] ?? '');
}
