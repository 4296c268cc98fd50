import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The example that each recipe of CONTRIBUTING.md follows, as its files name it, and where. */
const RECIPES = [
  [
    'Add a socket protocol',
    String.raw`responsesDialect|socket\??: 'responses'|responsesSocket|startResponsesProvider|Responses over a WebSocket`,
    ['apps', 'docs/guides', 'docs/reference', 'infra', 'packages', 'test/sockets'],
  ],
  ['Add a webhook event', String.raw`budget\.reset`, ['apps', 'docs', 'packages']],
  ['Add a route', 'getRefusals|/v1/refusals', ['apps', 'docs', 'packages']],
  ['Add a page to the console', String.raw`\bAccounts\b|'accounts'`, ['apps/console']],
] as const;

/** Files that are generated: a recipe names the command alone. */
const GENERATED = [
  'docs/reference/openapi.json',
  'packages/client/generated',
  'packages/client-python/src/presign_client',
];

test.each(RECIPES)(
  '"%s" lists every file that its example is in, and no other',
  (heading, example, within) => {
    const listed = pathsOf(sectionOf(heading));
    expect(listed.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(
      filesWith(example, within).filter(
        (file) => ![...listed, ...GENERATED].some((path) => isAt(path, file)),
      ),
    ).toEqual([]);
    expect(listed.filter((path) => filesWith(example, [path]).length === 0)).toEqual([]);
  },
);

/** The part of CONTRIBUTING.md below a heading. */
function sectionOf(heading: string): string {
  const page = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  return page.split(/^## /m).find((section) => section.startsWith(`${heading}\n`)) ?? '';
}

/** The paths with which the items of a section's list begin. */
const pathsOf = (section: string): string[] =>
  Array.from(section.matchAll(/^- (`[^:]*):/gm), ([, names = '']) => names).flatMap((names) =>
    Array.from(names.matchAll(/`([^`]+)`/g), ([, path = '']) => path),
  );

const isAt = (path: string, file: string): boolean => file === path || file.startsWith(`${path}/`);

/** Files of the project that have a text. */
function filesWith(pattern: string, within: readonly string[]): string[] {
  const args = ['grep', '--untracked', '-lE', pattern, '--', ...within];
  try {
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  } catch {
    // It ends with 1 if it finds nothing.
    return [];
  }
}
