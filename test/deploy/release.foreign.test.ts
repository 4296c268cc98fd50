import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';

const { deploy } = inject('toolchains');
const ROOT = join(import.meta.dirname, '../..');
const WORKFLOWS = join(ROOT, '.github/workflows');
const files = readdirSync(WORKFLOWS).map((name) => join(WORKFLOWS, name));

describe.skipIf('skipped' in deploy)('the workflows', () => {
  const lint = (...args: string[]) =>
    spawnSync('at' in deploy ? join(deploy.at, 'actionlint') : '', ['-no-color', ...args], {
      encoding: 'utf8',
    });

  test('are valid, and a wrong workflow is detected', () => {
    expect(lint(...files)).toMatchObject({ status: 0, stdout: '' });
    const folder = mkdtempSync(join(tmpdir(), 'presign-workflow-'));
    const wrong = join(folder, 'wrong.yml');
    writeFileSync(wrong, readFileSync(files[0] ?? '', 'utf8').replace('runs-on:', 'run-on:'));
    expect(lint(wrong).status).toBe(1);
    rmSync(folder, { recursive: true });
  });
});

test('every action is pinned to a commit', () => {
  const uses = files.flatMap((file) =>
    Array.from(readFileSync(file, 'utf8').matchAll(/uses: (.*)/g), ([, use]) => use),
  );
  expect(uses.length).toBeGreaterThan(8);
  for (const use of uses) expect(use).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
});

test('the clients are published without a token, with provenance from this repository', () => {
  const [release = ''] = files.filter((file) => file.endsWith('release.yml'));
  const { jobs } = parse(readFileSync(release, 'utf8')) as { jobs: Record<string, Job> };
  for (const name of ['npm', 'pypi']) {
    const { environment, permissions, steps = [] } = jobs[name] ?? {};
    expect([name, environment, permissions]).toEqual([name, name, { contents: 'read', 'id-token': 'write' }]);
    expect(JSON.stringify(steps)).toContain('$GITHUB_SERVER_URL/$GITHUB_REPOSITORY');
    expect(JSON.stringify(steps)).not.toMatch(/secrets\.|password|TOKEN/);
  }
});

type Job = { environment?: string; permissions?: object; steps?: object[] };

test('a release contains its own section of the changelog, and fails without one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'presign-notes-'));
  mkdirSync(join(folder, 'infra'));
  cpSync(join(ROOT, 'infra/release-notes.sh'), join(folder, 'infra/release-notes.sh'));
  const page =
    '# Changelog\n\n## Unreleased\n\n## 1.1.0 - 2026-02-01\n\n### Added\n\n- two\n\n## 1.0.0 - 2026-01-01\n\n- one\n';
  writeFileSync(join(folder, 'CHANGELOG.md'), page);
  const notes = (version: string) =>
    spawnSync('bash', [join(folder, 'infra/release-notes.sh'), version], { encoding: 'utf8' });
  expect(notes('1.1.0').stdout.trim()).toBe('### Added\n\n- two');
  expect(notes('1.0.0').stdout.trim()).toBe('- one');
  for (const version of ['Unreleased', '2.0.0', '1.1']) expect(notes(version).status).toBe(1);
  rmSync(folder, { recursive: true });
});
