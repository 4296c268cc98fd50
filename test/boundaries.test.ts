import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** One workspace package: what it is called, what it declares, its source files by path from the root. */
type Member = {
  readonly name: string;
  readonly dir: string;
  readonly dependencies: ReadonlySet<string>;
  readonly files: ReadonlyMap<string, string>;
};

const PACKAGES = [
  '@presign/crypto',
  '@presign/limits',
  '@presign/outbound',
  '@presign/providers',
  '@presign/schema',
];
const APPS = ['@presign/gateway', '@presign/issuer'];

/** Which members of the workspace each one may import: one direction, apps → packages. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  '@presign/client': [],
  '@presign/crypto': [],
  '@presign/outbound': [],
  '@presign/schema': [],
  '@presign/limits': ['@presign/schema'],
  '@presign/providers': ['@presign/schema'],
  '@presign/issuer': PACKAGES,
  '@presign/gateway': PACKAGES,
  '@presign/local': [...PACKAGES, ...APPS],
};

/** Names that say where a thing lies and not what it does. */
const EMPTY_NAME = /^(utils?|helpers?|commons?|services?|controllers?|repository|repositories)$/i;
const LONGEST_FILE = 250;

const members = ['packages', 'apps', 'infra'].flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .map((name) => join(folder, name))
    .filter((dir) => existsSync(join(ROOT, dir, 'package.json')))
    .map(readMember),
);
const sources = members.flatMap((member) =>
  [...member.files].map(([file, text]) => ({ member, file, text })),
);

describe('the workspace', () => {
  test('has the members whose imports are ruled here, and no others', () => {
    expect(members.map((member) => member.name).sort()).toEqual(Object.keys(MAY_IMPORT).sort());
    for (const member of members) expect(member.files.size, member.name).toBeGreaterThan(0);
  });

  test('packages and apps import only what they may and what they declare', () => {
    const wrong = sources.flatMap(({ member, file, text }) => wrongImports(member, file, text));
    expect(wrong).toEqual([]);
  });

  test("only a package's own index.ts passes on what other files export", () => {
    const barrels = sources.filter(({ member, file, text }) => isBarrel(member, file, text));
    expect(barrels.map(({ file }) => file)).toEqual([]);
  });

  test('no file or folder has a name that says nothing', () => {
    const named = sources.filter(({ file }) => hasEmptyName(file));
    expect(named.map(({ file }) => file)).toEqual([]);
  });

  test(`no source file is longer than ${LONGEST_FILE} lines`, () => {
    const long = sources.filter(({ text }) => text.trimEnd().split('\n').length > LONGEST_FILE);
    expect(long.map(({ file }) => file)).toEqual([]);
  });
});

describe('the rules themselves catch', () => {
  const gateway: Member = {
    name: '@presign/gateway',
    dir: 'apps/gateway',
    dependencies: new Set(['hono', '@presign/schema', '@presign/issuer']),
    files: new Map(),
  };
  const crypto: Member = { ...gateway, name: '@presign/crypto', dir: 'packages/crypto' };
  const file = 'apps/gateway/src/app.ts';

  test.each([
    ['an app imported by an app, even if declared', gateway, "import { a } from '@presign/issuer';"],
    ['an app imported by its path', gateway, "import { a } from '../../issuer/src/app.ts';"],
    ['a package imported by its path', gateway, "export * from '../../../packages/schema/src/json.ts';"],
    ['a package that is not declared', gateway, "import { z } from 'zod';"],
    ['a file of a package that is not declared', gateway, "import 'zod/v4';"],
    ['an import over several lines', gateway, "import {\n  a,\n} from 'zod';"],
    ['an import under way', gateway, "const z = await import('zod');"],
    ['a type alone', gateway, "import type { z } from 'zod';"],
    ['a builtin without its prefix', gateway, "import { join } from 'path';"],
    ['schema imported by crypto', crypto, "import { a } from '@presign/schema';"],
  ])('%s', (_what, member, text) => {
    expect(wrongImports(member, join(member.dir, 'src/app.ts'), text)).toHaveLength(1);
  });

  test('and let pass what is right', () => {
    const text = "import { Hono } from 'hono';\nimport 'hono/x';\nimport a from './b.ts';\nimport 'node:fs';";
    expect(wrongImports(gateway, file, text)).toEqual([]);
    expect(wrongImports(gateway, file, "export * from '@presign/schema/tables';")).toEqual([]);
  });

  test('a barrel beside index.ts, and a name that says nothing', () => {
    expect(isBarrel(gateway, 'apps/gateway/src/all.ts', "export * from './a.ts';")).toBe(true);
    expect(isBarrel(gateway, 'apps/gateway/src/llm/index.ts', "export { a } from './a.ts';")).toBe(true);
    expect(isBarrel(gateway, 'apps/gateway/src/index.ts', "export { a } from './a.ts';")).toBe(false);
    expect(['src/utils.ts', 'src/helpers/a.ts', 'src/common/a.ts'].every(hasEmptyName)).toBe(true);
    expect(['src/commons-clause.ts', 'src/settle.ts'].some(hasEmptyName)).toBe(false);
  });
});

function wrongImports(member: Member, file: string, text: string): string[] {
  return importsOf(text).flatMap((specifier) => {
    const problem = specifier.startsWith('.')
      ? judgePath(member, file, specifier)
      : judgePackage(member, specifier);
    return problem === undefined ? [] : [`${file}: ${specifier} ${problem}`];
  });
}

/** What a file imports or passes on: with `from`, for its effects alone, or under way. */
const IMPORT =
  /^(?:import|export)\s[^'"`;=(]*\bfrom\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm;

const importsOf = (text: string): string[] =>
  Array.from(text.matchAll(IMPORT), ([, from, bare, underWay]) => from ?? bare ?? underWay ?? '');

function judgePath(member: Member, file: string, specifier: string): string | undefined {
  const target = relative(member.dir, join(dirname(file), specifier));
  return target.startsWith('..') ? `leaves ${member.dir}` : undefined;
}

function judgePackage(member: Member, specifier: string): string | undefined {
  if (specifier.startsWith('node:')) return undefined;
  if (isBuiltin(specifier)) return 'lacks node:';
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  if (name.startsWith('@presign/') && !MAY_IMPORT[member.name]?.includes(name)) {
    return `may not be imported by ${member.name}`;
  }
  return member.dependencies.has(name) ? undefined : `is no dependency of ${member.name}`;
}

const isBarrel = (member: Member, file: string, text: string): boolean =>
  file !== join(member.dir, 'src/index.ts') && /^export\s[^;'"=(]*\sfrom\s+['"]/m.test(text);

const hasEmptyName = (file: string): boolean =>
  file.split('/').some((part) => EMPTY_NAME.test(basename(part, '.ts')));

function readMember(dir: string): Member {
  const described = JSON.parse(readFileSync(join(ROOT, dir, 'package.json'), 'utf8')) as {
    name: string;
    dependencies?: Record<string, string>;
  };
  const src = resolve(ROOT, dir, 'src');
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => [join(dir, 'src', name), readFileSync(join(src, name), 'utf8')] as const);
  const dependencies = new Set(Object.keys(described.dependencies ?? {}));
  return { name: described.name, dir, dependencies, files: new Map(files) };
}
