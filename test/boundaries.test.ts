import { execFile, execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { LIMIT_NAMES, limitKind } from '@presign/schema/limits';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Names that say nothing about what a thing does. */
const EMPTY_NAME = /^(utils?|helpers?|commons?|services?|controllers?|repository|repositories)$/i;
const LONGEST_FILE = 350;

const LONGEST_FUNCTION = 60;

/** The lines of code of each function of a Lua script that begins at the margin, and of the rest of it. */
function luaParts(text: string): [string, number][] {
  const parts = new Map([['the rest', 0]]);
  let part = 'the rest';
  for (const line of text.split('\n').filter((each) => !/^(#!|\s*--|\s*$)/.test(each))) {
    part = /^(?:local )?function (\w+)/.exec(line)?.[1] ?? part;
    parts.set(part, (parts.get(part) ?? 0) + 1);
    if (/^(?:local )?function .* end$|^end$/.test(line)) part = 'the rest';
  }
  return [...parts];
}

/** The folder of each app and package, by path from the root. */
const members = ['packages', 'apps', 'infra'].flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .map((name) => join(folder, name))
    .filter((dir) => existsSync(join(ROOT, dir, 'package.json'))),
);
const sources = members.flatMap((dir) =>
  readdirSync(join(ROOT, dir, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(tsx?|lua)$/.test(name))
    .map((name) => join(dir, 'src', name))
    .map((file) => ({ dir, file, text: readFileSync(join(ROOT, file), 'utf8') })),
);

describe('the source of every app and package', () => {
  test('is found by the tests below', () => {
    expect(members).toEqual(expect.arrayContaining(['apps/gateway', 'packages/schema', 'infra/local']));
    for (const dir of members)
      expect(sources.filter((each) => each.dir === dir).length, dir).toBeGreaterThan(0);
  });

  test("re-exports other files only in a package's own index.ts", () => {
    const barrels = sources.filter(({ dir, file, text }) => isBarrel(dir, file, text));
    expect(barrels.map(({ file }) => file)).toEqual([]);
  });

  test('has no file or folder with a meaningless name', () => {
    const named = sources.filter(({ file }) => hasEmptyName(file));
    expect(named.map(({ file }) => file)).toEqual([]);
  });

  test(`has no file longer than ${LONGEST_FILE} lines`, () => {
    const long = sources.filter(({ text }) => text.trimEnd().split('\n').length > LONGEST_FILE);
    expect(long.map(({ file }) => file)).toEqual([]);
  });

  // Biome holds TypeScript to as many.
  test(`has no Lua function, and no script outside of its functions, longer than ${LONGEST_FUNCTION} lines`, () => {
    const long = sources
      .filter(({ file }) => file.endsWith('.lua'))
      .flatMap(({ file, text }) =>
        luaParts(text).map(([name, lines]) => [`${file}: ${name}`, lines] as const),
      )
      .filter(([, lines]) => lines > LONGEST_FUNCTION);
    expect(long).toEqual([]);
  });

  // pnpm links a development dependency too, and dependency-cruiser does not see which list names a member.
  test('declares other members of the workspace under dependencies', () => {
    const wrong = members.flatMap((dir) =>
      Object.keys(readPackage(dir).devDependencies ?? {}).filter((name) => name.startsWith('@presign/')),
    );
    expect(wrong).toEqual([]);
  });

  test('the checks for barrels and names detect a violation', () => {
    const dir = 'apps/gateway';
    expect(isBarrel(dir, 'apps/gateway/src/all.ts', "export * from './a.ts';")).toBe(true);
    expect(isBarrel(dir, 'apps/gateway/src/llm/index.ts', "export { a } from './a.ts';")).toBe(true);
    expect(isBarrel(dir, 'apps/gateway/src/index.ts', "export { a } from './a.ts';")).toBe(false);
    expect(['src/utils.ts', 'src/helpers/a.ts', 'src/common/a.ts'].every(hasEmptyName)).toBe(true);
    expect(['src/commons-clause.ts', 'src/settle.ts'].some(hasEmptyName)).toBe(false);
    const lua =
      '-- a\nlocal function f(x)\n  -- b\n  return x\nend\nlocal function g() return 1 end\nreturn f(g())\n';
    expect(luaParts(lua)).toEqual([
      ['the rest', 1],
      ['f', 3],
      ['g', 1],
    ]);
  });
});

test('a limit is named only in its row, its column, its check and the code that keeps its level', () => {
  const { property, field } = limitKind('calls_per_day');
  const its = new RegExp(`\\b(calls_per_day|${property}|${field})`);
  const named = sources.filter(({ text }) => its.test(text)).map(({ file }) => file);
  expect(named.sort()).toEqual([
    'packages/limits/src/lua/admit.lua',
    'packages/limits/src/lua/load.lua',
    'packages/schema/src/limit-kinds.ts',
    'packages/schema/src/tables/tables.ts',
  ]);
});

const RATE_LIMITS = LIMIT_NAMES.filter((name) => !limitKind(name).isAlwaysStored);
test.each(RATE_LIMITS)('docs/reference/rate-limits.md has a true row for %s', (name) => {
  const page = readFileSync(join(ROOT, 'docs/reference/rate-limits.md'), 'utf8').replaceAll(/ +/g, ' ');
  const { least, most, urls, rate } = limitKind(name);
  const of = urls === 'all' ? 'a URL, or all servers of a bundle' : 'a URL of an LLM provider';
  const row = `| \`${name}\` | ${least} to ${most.toLocaleString('en')} | ${of} | 429 \`${rate?.code ?? ''}`;
  expect(page).toContain(row);
});

describe('the dependencies', () => {
  const lock = readFileSync(join(ROOT, 'pnpm-lock.yaml'), 'utf8');
  const wanted = Array.from(lock.matchAll(/^ {4}engines: \{node: '?([^',}]+)/gm), ([, range = '']) => range);

  test('all run on the oldest Node that package.json allows, so that an installation prints no engine warning', () => {
    expect(readPackage('.').engines).toEqual({ node: '>=20.19' });
    expect(wanted.length).toBeGreaterThan(100);
    expect(wanted.filter((range) => !runsOnNode20(range))).toEqual([]);
  });

  test('the check for Node versions detects a violation', () => {
    expect(
      ['>=18', '>= 0.4', '20 || >=22', '^20.19.0 || >=22.12.0', '>=20.18.1'].filter(runsOnNode20),
    ).toHaveLength(5);
    expect(['>=22', '>=20.20', '^18 || >=22', '>= 24.x'].some(runsOnNode20)).toBe(false);
  });
});

describe('the rules for imports in .dependency-cruiser.mjs', () => {
  const planted = mkdtempSync(join(tmpdir(), 'presign-imports-'));
  let report: string;
  let found: readonly string[];
  beforeAll(async () => {
    plant(planted);
    report = await cruise(planted);
    found = violationsIn(report);
  });
  afterAll(() => rmSync(planted, { recursive: true }));

  test.each([
    ['a circle of types alone', 'no-circle apps/gateway/src/circle-a.ts'],
    ['an app that imports another by name', 'no-app-in-an-app apps/gateway/src/by-name.ts'],
    ['an app that imports another by path', 'no-app-in-an-app apps/gateway/src/by-path.ts'],
    ['a type from app.ts', 'app-is-for-start apps/gateway/src/type-of-app.ts'],
    ['a package that imports an app', 'packages-know-no-app packages/limits/src/app.ts'],
    ['source that imports a test', 'source-knows-no-test packages/limits/src/test.ts'],
    [
      'limits that import crypto',
      'limits-and-providers-import-schema-and-service-alone packages/limits/src/crypto.ts',
    ],
    ['crypto that imports schema', 'base-imports-no-package packages/crypto/src/schema.ts'],
    ['service that imports crypto', 'service-imports-schema-alone packages/service/src/crypto.ts'],
    ['a circle of folders by types alone', 'folders-one-way packages/schema/src/one'],
    [
      'a folder that imports the one around it',
      'folder-below-its-folder packages/schema/src/one/inside/out.ts',
    ],
    ['a folder that imports deps.ts of its app', 'root-of-an-app-composes apps/issuer/src/room/deps.ts'],
    [
      'a file at the root of a package that imports a folder',
      'root-of-a-package-is-its-ground packages/schema/src/root.ts',
    ],
    ['a package imported by its path', 'members-by-name packages/limits/src/by-path.ts'],
    ['a development dependency', 'declared-dependencies apps/gateway/src/dev.ts'],
    ['a package that is not declared', 'resolvable apps/gateway/src/undeclared.ts'],
    ['an import that is made later', 'resolvable apps/gateway/src/later.ts'],
  ])('detect %s', (_case, violation) => {
    expect(found).toContain(violation);
  });

  test('have a count in `pnpm arrows`, by the folders of a cycle', () => {
    const arrows = join(ROOT, 'infra/arrows.mjs');
    const printed = execFileSync(process.execPath, [arrows], { input: report, encoding: 'utf8' });
    expect(printed).toContain('packages/schema: 1 arrows back, 1 circles of 2 ');
    expect(printed).toMatch(/circle: (one two|two one)\n/);
    expect(printed).toContain('packages/limits: 0 arrows back, 0 circles');
  });

  test('allow correct imports', () => {
    expect(found.filter((violation) => violation.includes('/right'))).toEqual([]);
  });
});

const isBarrel = (dir: string, file: string, text: string): boolean =>
  file !== join(dir, 'src/index.ts') && /^export\s[^;'"=(]*\sfrom\s+['"]/m.test(text);

/** A package has a name for what its files have in common, and its README says what that is. */
const hasEmptyName = (file: string): boolean =>
  file
    .replace(/^packages\/[^/]+\//, '')
    .split('/')
    .some((part) => EMPTY_NAME.test(basename(part, '.ts')));

type Package = {
  readonly engines?: object;
  readonly devDependencies?: Readonly<Record<string, string>>;
};

const readPackage = (dir: string): Package =>
  JSON.parse(readFileSync(join(ROOT, dir, 'package.json'), 'utf8')) as Package;

/** Whether a range admits Node 20.19.0: one of its alternatives begins at 20.19 or before, and does not end before 20. */
const runsOnNode20 = (range: string): boolean =>
  range.split('||').some((part) => {
    const [, operator, major = '', minor = '0'] = /^\s*(\^|>=|)\s*(\d+)(?:\.(\d+))?/.exec(part) ?? [];
    if (Number(major) === 20) return Number(minor) <= 19;
    return operator === '>=' && Number(major) < 20;
  });

/** A small workspace: one file for each rule that it breaks, and `right.ts`. */
function plant(root: string): void {
  const members = {
    'apps/gateway': ['@presign/schema', '@presign/issuer', '@presign/crypto'],
    'apps/issuer': [],
    'packages/limits': ['@presign/schema', '@presign/crypto', '@presign/gateway'],
    'packages/crypto': ['@presign/schema'],
    'packages/service': ['@presign/crypto', '@presign/schema'],
    'packages/schema': [],
  };
  for (const [dir, dependencies] of Object.entries(members)) {
    const name = `@presign/${basename(dir)}`;
    write(
      join(root, dir, 'package.json'),
      JSON.stringify({ name, exports: './src/index.ts', ...devOf(dir) }),
    );
    write(join(root, dir, 'src/index.ts'), 'export const a = 1;\nexport type A = number;\n');
    for (const each of dependencies) {
      const target = Object.keys(members).find((other) => basename(other) === basename(each)) ?? '';
      mkdirSync(join(root, dir, 'node_modules/@presign'), { recursive: true });
      symlinkSync(join(root, target), join(root, dir, 'node_modules', each));
    }
  }
  const vitest = join(root, 'apps/gateway/node_modules/vitest');
  write(join(vitest, 'package.json'), JSON.stringify({ name: 'vitest', main: 'index.js' }));
  write(join(vitest, 'index.js'), '');
  for (const [file, text] of Object.entries(PLANTED)) write(join(root, file), text);
}

const devOf = (dir: string) => (dir === 'apps/gateway' ? { devDependencies: { vitest: '4' } } : {});

const PLANTED = {
  'apps/gateway/src/circle-a.ts': "import type { B } from './circle-b.ts';\nexport type A = B;\n",
  'apps/gateway/src/circle-b.ts': "import type { A } from './circle-a.ts';\nexport type B = A | 1;\n",
  'apps/gateway/src/by-name.ts': "import { a } from '@presign/issuer';\na;\n",
  'apps/gateway/src/by-path.ts': "import { a } from '../../issuer/src/index.ts';\na;\n",
  'apps/gateway/src/app.ts': "import type { A } from '@presign/schema';\nexport type Deps = A;\n",
  'apps/gateway/src/type-of-app.ts': "import type { Deps } from './app.ts';\nexport type Call = Deps;\n",
  'apps/gateway/src/start.ts': "import type { Deps } from './app.ts';\nexport type Start = Deps;\n",
  'apps/gateway/src/dev.ts': "import 'vitest';\n",
  'apps/gateway/src/undeclared.ts': "import type { z } from 'zod';\nexport type Z = z;\n",
  'apps/gateway/src/later.ts': "export const later = import('zod');\n",
  'apps/gateway/src/right.ts':
    "import 'node:fs';\nimport { a } from '@presign/schema';\nimport { a as b } from '@presign/crypto';\na + b;\n",
  'packages/limits/src/app.ts': "import { a } from '@presign/gateway';\na;\n",
  'packages/limits/src/test.ts': "import '../test/planted.ts';\n",
  'packages/limits/test/planted.ts': "import '@presign/schema';\n",
  'packages/limits/src/crypto.ts': "import type { A } from '@presign/crypto';\nexport type B = A;\n",
  'packages/limits/src/by-path.ts': "export * from '../../schema/src/index.ts';\n",
  'packages/limits/src/right.ts': "export { a as b } from '@presign/schema';\n",
  'packages/service/src/crypto.ts': "import { a } from '@presign/crypto';\na;\n",
  'packages/service/src/right.ts': "export { a } from '@presign/schema';\n",
  'packages/schema/src/one/to-two.ts': "import type { Two } from '../two/two.ts';\nexport type One = Two;\n",
  'packages/schema/src/one/leaf.ts': 'export type Leaf = 1;\n',
  'packages/schema/src/one/inside/out.ts':
    "import type { Leaf } from '../leaf.ts';\nexport type Out = Leaf;\n",
  'packages/schema/src/two/two.ts': 'export type Two = 2;\n',
  'packages/schema/src/two/to-one.ts':
    "import type { Leaf } from '../one/leaf.ts';\nexport type Back = Leaf;\n",
  'packages/schema/src/root.ts': "import type { Two } from './two/two.ts';\nexport type Root = Two;\n",
  'packages/schema/src/right/right.ts':
    "import type { Two } from '../two/two.ts';\nimport type { Inside } from './inside/right.ts';\nimport { a } from '../right.ts';\nexport type Right = Two | Inside | typeof a;\n",
  'packages/schema/src/right/inside/right.ts': 'export type Inside = 3;\n',
  'packages/schema/src/right.ts': 'export const a = 1;\n',
  'apps/issuer/src/deps.ts': "import type { Need } from './room/right.ts';\nexport type Deps = Need;\n",
  'apps/issuer/src/room/right.ts': 'export type Need = 1;\n',
  'apps/issuer/src/room/deps.ts': "import type { Deps } from '../deps.ts';\nexport type Uses = Deps;\n",
  'packages/crypto/src/schema.ts': "import { a } from '@presign/schema';\na;\n",
};

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

type Report = {
  readonly summary: { readonly violations: readonly { rule: { name: string }; from: string }[] };
};

/** The report on a folder, as JSON. */
async function cruise(folder: string): Promise<string> {
  const config = join(ROOT, '.dependency-cruiser.mjs');
  const args = ['--config', config, '--output-type', 'json', 'apps', 'packages'];
  const run = promisify(execFile)(join(ROOT, 'node_modules/.bin/depcruise'), args, { cwd: folder });
  return (await run).stdout;
}

/** The violations in a report, each as `rule file`. */
const violationsIn = (report: string): string[] =>
  (JSON.parse(report) as Report).summary.violations.map(({ rule, from }) => `${rule.name} ${from}`);
