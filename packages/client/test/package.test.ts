import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const described = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as {
  type: string;
  dependencies?: object;
  publishConfig: { exports: { '.': { types: string; default: string } } };
};

let folder: string;
/** Where it lies as a dependency of someone's. */
let installed: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'presign-client-'));
  installed = join(folder, 'node_modules/@presign/client');
  run(PACKAGE, TSC, '-p', 'tsconfig.dist.json', '--outDir', join(installed, 'dist'));
  const { type, publishConfig } = described;
  writeFileSync(
    join(installed, 'package.json'),
    JSON.stringify({ name: '@presign/client', type, exports: publishConfig.exports }),
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

test('it depends on nothing', () => {
  expect(described.dependencies).toBeUndefined();
});

test('as published it runs in Node as it is', () => {
  const code = `
    import { createPresign, openaiOptions } from '@presign/client';
    const presign = createPresign({ url: 'https://issuer.example', apiKey: 'a' });
    console.log(typeof presign.mcpPresign, openaiOptions({ url: 'https://g.example/llm/t/a/v1/x' }).baseURL);`;
  writeFileSync(join(folder, 'program.mjs'), code);
  expect(run(folder, 'program.mjs')).toBe('function https://g.example/llm/t/a/v1\n');
});

test('as published it has its types, which know the answers', () => {
  const { types } = described.publishConfig.exports['.'];
  expect(existsSync(join(installed, types))).toBe(true);
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

test('nothing of it is of Node alone', () => {
  const files = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.js'),
  );
  const texts = files.map((name) => readFileSync(join(installed, 'dist', name), 'utf8'));
  expect(texts.some((text) => text.includes('globalThis.fetch'))).toBe(true);
  for (const text of texts) expect(text).not.toMatch(/node:|process\.|Buffer/);
});

function run(cwd: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: 'utf8' });
  expect([status, stderr], stdout).toEqual([0, '']);
  return stdout;
}
