import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type SecurityTests, statementsOf } from '../../docs/security-statements.ts';

// That docs/reference/security-tests.md is what its generator prints: generated.test.ts.

const ROOT = new URL('../../', import.meta.url);
const page = readFileSync(new URL('SECURITY.md', ROOT), 'utf8');
const { statements, attacks }: SecurityTests = JSON.parse(
  readFileSync(new URL('docs/security-tests.json', ROOT), 'utf8'),
);
const stated = ['Promised', 'Not promised'].map((heading) => statementsOf(page, heading));

test('each item below "Promised" and "Not promised" begins with a bold statement', () => {
  const items = ['Promised', 'Not promised'].map(
    (heading) =>
      page
        .split(/^## /m)
        .find((text) => text.startsWith(`${heading}\n`))
        ?.match(/^- /gm)?.length,
  );
  expect(items).toEqual(stated.map(({ length }) => length));
  for (const { length } of stated) expect(length).toBeGreaterThan(10);
});

test('SECURITY.md has exactly the statements whose tests are listed', () => {
  expect(Object.keys(statements).toSorted()).toEqual(stated.flat().toSorted());
});

test.each(Object.entries(statements))('"%s" has tests, and each exists', (_, tests) => {
  expect(tests).not.toEqual([]);
  expect(tests.filter((each) => !isTest(each))).toEqual([]);
});

test('each attack has tests, and each exists', () => {
  const rows = Object.values(attacks).flat();
  expect(rows.length).toBeGreaterThan(40);
  expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
  expect(rows.flatMap(({ tests }) => tests).filter((each) => !isTest(each))).toEqual([]);
});

test('a test that does not exist is noticed', () => {
  expect(isTest('test/e2e/no-such.test.ts > limits')).toBe(false);
  expect(isTest('test/e2e/limits.test.ts > no such test')).toBe(false);
});

/** Whether the file names a test so: as a whole text, in any quotes. */
function isTest(named: string): boolean {
  const [file = '', title = ''] = named.split(/ > (.*)/s);
  const url = new URL(file, ROOT);
  if (!existsSync(url)) return false;
  const source = readFileSync(url, 'utf8').replaceAll("\\'", "'");
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`));
}
