import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');
const scale = read('docs/guides/scale.md');

/** The cells of a row, by how its first cell begins. */
const rowOf = (page: string, name: string): readonly string[] =>
  page
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .find((cells) => cells[1]?.startsWith(name))
    ?.slice(2, -1) ?? [];

// The gateway's figure in the first table: generated.test.ts.
test('docs/guides/scale.md contains the output of its simulation', () => {
  const script = fileURLToPath(new URL('bench/scale/simulate.ts', ROOT));
  const printed = execFileSync(process.execPath, ['--import', 'tsx', script], { encoding: 'utf8', env: {} });
  const parts = printed.split('\n').filter((line) => /^\| (gate|Redis|issuers|Postgres|deleting)/.test(line));
  expect(parts).toHaveLength(5);
  const simulated = scale.slice(scale.indexOf('## Which part gives first'));
  for (const line of parts) {
    const [, name = '', , ...counts] = line.split('|').map((cell) => cell.trim());
    expect(rowOf(simulated, name), name).toEqual(counts.slice(0, -1));
  }
});

test('docs/guides/operate/sizing.md has the rates of docs/guides/scale.md', () => {
  const sizing = read('docs/guides/operate/sizing.md');
  for (const [part, name] of [
    ['gateway', 'gateway, JSON'],
    ['issuer', 'issuer that'],
  ] as const) {
    const [, rate = ''] = rowOf(scale, name);
    expect(rate).toMatch(/^\d+,\d{3}$/);
    expect(rowOf(sizing, part)[1]).toContain(`about ${rate} `);
  }
});

test.each(['9,925', '47 KB'])(
  'docs/guides/scale.md and docs/reference/performance.md agree on %s for slow streams',
  (figure) => {
    for (const page of [read('docs/reference/performance.md'), scale])
      expect(page.replaceAll(/\s+/g, ' ')).toContain(figure);
  },
);
