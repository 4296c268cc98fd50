import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const docs = new URL('../../docs/', import.meta.url);

// docs/reference/openapi.json: test/issuer/openapi.test.ts.
test.each(['configuration', 'errors', 'security-tests'])(
  'docs/reference/%s.md is the output of its generator',
  (page) => {
    const script = fileURLToPath(new URL(`generate-${page}.ts`, docs));
    const { stdout, stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(readFileSync(new URL(`reference/${page}.md`, docs), 'utf8')).toBe(stdout);
  },
);

test('the table of Redis keys names every field that a script uses', () => {
  const script = fileURLToPath(new URL('generate-redis-keys.ts', docs));
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(readFileSync(new URL('../packages/limits/README.md', docs), 'utf8')).toContain(stdout);
});

test('packages/limits/README.md has a row for each script, and names those that a full Redis refuses', () => {
  const limits = new URL('../packages/limits/', docs);
  const readme = readFileSync(new URL('README.md', limits), 'utf8').replaceAll(/ +/g, ' ');
  const scripts = readdirSync(new URL('src/lua/', limits), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua') && !file.startsWith('shared'))
    .map((file) => ({
      name: basename(file, '.lua'),
      kind: readFileSync(new URL(`src/lua/${file}`, limits), 'utf8').split('\n', 1)[0] ?? '',
    }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  const rows = Array.from(
    readme.matchAll(/^\| (`[^|]+) \| (?:gateway|issuer) \|/gm),
    ([, names = '']) => names,
  );
  expect(rows.flatMap((names) => names.replaceAll('`', '').split(', ')).sort()).toEqual(
    scripts.map(({ name }) => name),
  );
  for (const kind of ['#!lua', '#!lua flags=no-writes']) {
    const names = scripts.filter((script) => script.kind === kind).map(({ name }) => `\`${name}\``);
    expect(readme).toContain(`| \`${kind}\` | ${names.join(', ')} |`);
  }
});

test('ARCHITECTURE.md names every table of Postgres', () => {
  const page = readFileSync(new URL('../ARCHITECTURE.md', docs), 'utf8');
  const migrations = new URL('../packages/schema/migrations/', docs);
  const created = readdirSync(migrations)
    .filter((file) => file.endsWith('.sql'))
    .flatMap((file) =>
      Array.from(readFileSync(new URL(file, migrations), 'utf8').matchAll(/^CREATE TABLE "(\w+)"/gm)),
    )
    .map(([, name = '']) => name);
  expect(created.length).toBeGreaterThan(20);
  expect(created.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});

test('the figures and the chart of docs/reference/performance.md equal bench/results.json', () => {
  const script = fileURLToPath(new URL('../bench/table/render.ts', docs));
  const { stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script, '--check'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
