import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const KEYS = fileURLToPath(new URL('../src/keys.ts', import.meta.url));
const compose = readFileSync(new URL('../../../infra/compose.yaml', import.meta.url), 'utf8');

const print = () =>
  execFileSync(process.execPath, ['--import', 'tsx', KEYS], { encoding: 'utf8' })
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/=(.*)/s, 2) as [string, string]);

test('prints every secret that compose.yaml needs, and each value is new', () => {
  const secrets = [...compose.matchAll(/file: .*\/([A-Z_]+)$/gm)].map(([, name]) => name);
  expect(secrets).toContain('POSTGRES_PASSWORD');
  // secrets.sh makes the address from the password. The keys of a bucket are its operator's.
  const wanted = secrets.filter((name) => name !== 'DATABASE_URL' && !name?.startsWith('AWS_'));
  const printed = new Map(print());
  expect([...printed.keys()]).toEqual(expect.arrayContaining(wanted));
  for (const [name, value] of print()) expect(printed.get(name), name).not.toBe(value);
  expect(printed.get('POSTGRES_PASSWORD')).toMatch(/^[\w-]{32,}$/);
});
