import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../build/main.mjs', import.meta.url));
const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const REPOSITORY = 'https://github.com/example/presign';
const [ARCHIVE, WHEEL] = ['presign-client-0.1.0.tgz', 'presign_client-0.1.0-py3-none-any.whl'];

let folder: string;
/** Where it lies as a dependency of someone's. */
let installed: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'presign-client-'));
  run(folder, MAIN, 'packages', REPOSITORY);
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--offline', `./packages/${ARCHIVE}`], {
    cwd: folder,
    stdio: 'pipe',
  });
  installed = join(folder, 'node_modules/@presign/client');
});
afterAll(() => rmSync(folder, { recursive: true }));

test('npm installs it without dependencies', () => {
  expect(readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
    '@presign',
  ]);
  expect(readdirSync(join(folder, 'node_modules/@presign'))).toEqual(['client']);
});

test('its command runs', () => {
  expect(run(folder, join(folder, 'node_modules/.bin/presign'), '--help')).toContain(
    'Usage: presign COMMAND',
  );
});

test('its command ends without a message if the reader of its output has closed the pipe', async () => {
  const command = join(folder, 'node_modules/.bin/presign');
  const child = spawn(process.execPath, [command, '--help'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  const [note, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  expect([note, code]).toEqual(['', 0]);
});

test('the published package runs in Node', () => {
  const code = `
    import { createPresign, openaiOptions } from '@presign/client';
    const presign = createPresign({ url: 'https://issuer.example', apiKey: 'a' });
    console.log(typeof presign.mcpPresign, openaiOptions({ url: 'https://g.example/llm/t/a/v1/x' }).baseURL);`;
  writeFileSync(join(folder, 'program.mjs'), code);
  expect(run(folder, 'program.mjs')).toBe('function https://g.example/llm/t/a/v1\n');
});

test('the published package has its types, including those of the answers', () => {
  expect(existsSync(join(installed, 'dist/src/index.d.ts'))).toBe(true);
  writeFileSync(
    join(folder, 'program.mts'),
    `import { createPresign, each } from '@presign/client';
    const presign = createPresign({ url: 'https://issuer.example', apiKey: 'a' });
    const { url } = await presign.presign({ provider: 'openai', path: '/v1/x' });
    export const text: string = url;
    export const usage: string = await presign.getUsage({ from: '1', format: 'csv' });
    for await (const { id } of each(presign.listSessions)) id.at(0);
    // @ts-expect-error it is text
    export const wrong: number = url;`,
  );
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2022'];
  expect(run(folder, TSC, ...options, '--lib', 'es2022,dom', 'program.mts')).toBe('');
});

test('no code of it works in Node alone', () => {
  const files = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.js'),
  );
  const texts = files.map((name) => readFileSync(join(installed, 'dist', name), 'utf8'));
  expect(texts.some((text) => text.includes('globalThis.fetch'))).toBe(true);
  for (const text of texts) expect(text).not.toMatch(/node:|process\.|Buffer/);
});

test('the same sources build the same bytes', () => {
  run(folder, MAIN, 'again', REPOSITORY);
  const names = readdirSync(join(folder, 'packages'));
  expect(names).toHaveLength(3);
  for (const name of names)
    expect(readFileSync(join(folder, 'again', name))).toEqual(readFileSync(join(folder, 'packages', name)));
});

test('the metadata that registries show is complete and the same in both packages', () => {
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Record<
    string,
    unknown
  >;
  const wheel = readFileSync(join(folder, 'packages', WHEEL), 'latin1');
  const [, head = ''] = /(Metadata-Version: [\s\S]*?)\n\n/.exec(wheel) ?? [];
  const of = (field: string) => new RegExp(`^${field}: (.*)$`, 'm').exec(head)?.[1];
  expect(manifest).toEqual({
    name: '@presign/client',
    version: of('Version'),
    description: of('Summary'),
    keywords: of('Keywords')?.split(','),
    license: of('License-Expression'),
    repository: { type: 'git', url: `git+${REPOSITORY}.git`, directory: 'packages/client' },
    homepage: `${REPOSITORY}#readme`,
    bugs: `${REPOSITORY}/issues`,
    type: 'module',
    sideEffects: false,
    engines: { node: '>=20.19' },
    bin: { presign: './bin/presign.js' },
    exports: {
      '.': { types: './dist/src/index.d.ts', default: './dist/src/index.js' },
      './package.json': './package.json',
    },
    publishConfig: { access: 'public' },
  });
  expect(of('Name')).toBe('presign-client');
  expect(of('Requires-Python')).toBe('>=3.10');
  expect(of('Project-URL')).toBe(`Repository, ${REPOSITORY}`);
  expect(of('Description-Content-Type')).toBe('text/markdown');
  expect(wheel).toContain('# presign-client');
  for (const file of ['README.md', 'LICENSE']) expect(existsSync(join(installed, file)), file).toBe(true);
});

function run(cwd: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8' });
  expect([status, stderr], stdout).toEqual([0, '']);
  return stdout;
}
