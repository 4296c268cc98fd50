import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';

const { compose } = inject('toolchains');
const INFRA = join(import.meta.dirname, '../../infra');
const FILE = join(INFRA, 'compose.yaml');

describe.skipIf('skipped' in compose)('compose.yaml, as Docker Compose reads it', () => {
  const load = (files: readonly string[]) =>
    spawnSync('at' in compose ? compose.at : '', ['--format', 'json', ...files], {
      encoding: 'utf8',
      cwd: INFRA,
      env: { PATH: process.env.PATH },
    });

  test.each([
    ['alone', [FILE]],
    ['under the trial of the containers', [FILE, join(INFRA, 'compose.smoke.yaml')]],
  ])('is valid %s', (_name, files) => {
    const { status, stdout, stderr } = load(files);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const { services } = JSON.parse(stdout) as { services: Record<string, { user?: string }> };
    for (const name of ['gateway-1', 'gateway-2', 'issuer', 'migrate'])
      expect(services[name]?.user).toBe('1000:1000');
  });

  test.each([
    ['a field that does not exist', 'mem_limit: 1g', 'memory_limit: 1g'],
    ['a value of another type', 'read_only: true', 'read_only: [yes, no]'],
    ['a condition that does not exist', 'service_healthy', 'service_well'],
  ])('is refused with %s', (_name, right, wrong) => {
    const text = readFileSync(FILE, 'utf8');
    expect(text).toContain(right);
    const folder = mkdtempSync(join(tmpdir(), 'presign-compose-'));
    const file = join(folder, 'compose.yaml');
    writeFileSync(file, text.replace(right, wrong));
    expect(load([file]).status).not.toBe(0);
    rmSync(folder, { recursive: true });
  });
});
