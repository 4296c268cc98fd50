import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const docs = new URL('../../docs/', import.meta.url);

// docs/reference/openapi.json: test/issuer/openapi.test.ts.
test.each(['configuration', 'errors'])('docs/reference/%s.md is what its generator prints', (page) => {
  const script = fileURLToPath(new URL(`generate-${page}.ts`, docs));
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(readFileSync(new URL(`reference/${page}.md`, docs), 'utf8')).toBe(stdout);
});

test('the table of Redis keys names every field that a script uses', () => {
  const script = fileURLToPath(new URL('generate-redis-keys.ts', docs));
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(readFileSync(new URL('../packages/limits/README.md', docs), 'utf8')).toContain(stdout);
});

test('the figures of docs/reference/performance.md and its chart are those of bench/results.json', () => {
  const script = fileURLToPath(new URL('../bench/table/render.ts', docs));
  const { stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script, '--check'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
