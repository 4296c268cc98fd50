import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const docs = new URL('../../docs/', import.meta.url);

test('docs/reference/errors.md is what docs/generate-errors.ts prints: every code of the error table', () => {
  const script = fileURLToPath(new URL('generate-errors.ts', docs));
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(readFileSync(new URL('reference/errors.md', docs), 'utf8')).toBe(stdout);
});
