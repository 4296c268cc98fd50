import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

// That docs/reference/security-tests.md is what its generator prints: generated.test.ts.

const ROOT = new URL('../../', import.meta.url);
const page = readFileSync(new URL('SECURITY.md', ROOT), 'utf8');

/** Each test is `its file > its title`. */
type SecurityTests = {
  readonly statements: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  readonly attacks: Readonly<Record<string, readonly { readonly tests: readonly string[] }[]>>;
};
const { statements, attacks }: SecurityTests = JSON.parse(
  readFileSync(new URL('docs/security-tests.json', ROOT), 'utf8'),
);

test.each(['Promised', 'Not promised'])(
  'each item below "%s" begins with a statement that has tests',
  (heading) => {
    const items = itemsBelow(heading);
    expect(items.length).toBeGreaterThan(10);
    const bold = items.map((item) => /^\*\*(.+?)\*\*/s.exec(item)?.[1]?.replace(/\s+/g, ' '));
    expect(bold).toEqual(Object.keys(statements[heading] ?? {}));
  },
);

test.each(Object.values(statements).flatMap(Object.entries<readonly string[]>))(
  '"%s" has tests, and each exists',
  (_, tests) => {
    expect(tests).not.toEqual([]);
    expect(tests.filter((each) => !isTest(each))).toEqual([]);
  },
);

test('each attack has tests, and each exists', () => {
  const rows = Object.values(attacks).flat();
  expect(rows.length).toBeGreaterThan(40);
  expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
  expect(rows.flatMap(({ tests }) => tests).filter((each) => !isTest(each))).toEqual([]);
});

test('a test that does not exist is detected', () => {
  expect(isTest('test/e2e/no-such.test.ts > limits')).toBe(false);
  expect(isTest('test/e2e/limits.test.ts > no such test')).toBe(false);
});

function itemsBelow(heading: string): readonly string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  return section.split(/^- /m).slice(1);
}

/** Whether the file names a test so: as a whole text, in any quotes. */
function isTest(named: string): boolean {
  const [file = '', title = ''] = named.split(/ > (.*)/s);
  const url = new URL(file, ROOT);
  if (!existsSync(url)) return false;
  const source = readFileSync(url, 'utf8').replaceAll("\\'", "'");
  return ["'", '"', '`'].some((quote) => source.includes(`${quote}${title}${quote}`));
}
