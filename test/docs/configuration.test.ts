import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const docs = new URL('../../docs/', import.meta.url);

test('docs/reference/configuration.md is what docs/generate-configuration.ts prints: every variable that the code reads', () => {
  const script = fileURLToPath(new URL('generate-configuration.ts', docs));
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--import', 'tsx', script], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(readFileSync(new URL('reference/configuration.md', docs), 'utf8')).toBe(stdout);
});
