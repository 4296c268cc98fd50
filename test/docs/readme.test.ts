import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunningLocal, readLocalEnv, runLocal } from '@presign/local';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../harness/free-port.ts';

const ROOT = new URL('../../', import.meta.url);
/** Where the SDKs that the snippets import are installed. */
const HERE = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(new URL('README.md', ROOT), 'utf8');

let folder: string;
let ports: readonly [number, number];
let local: RunningLocal;
/** Set by the first snippet, as in a reader's shell. */
let presignedUrl: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  ports = [await freePort(), await freePort()];
  const env = readLocalEnv({
    PRESIGN_DATA_DIR: join(folder, '.presign'),
    ISSUER_PORT: String(ports[0]),
    GATEWAY_PORT: String(ports[1]),
  });
  local = await runLocal(env, pino({ level: 'silent' }));
});
afterAll(() => local.close());

test('the curl issues a URL and calls it; two of three uses are left', async () => {
  const snippet = fence('bash').replace(':8787', `:${ports[0]}`);
  const printed = await run('sh', ['-euc', `${snippet}\nprintf '\\n%s' "$PRESIGNED_URL"`], folder);
  const [head = '', body = ''] = printed.split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  expect(head.toLowerCase()).toContain('\r\nx-presign-uses-remaining: 2');
  const [answer = '', url = ''] = body.split('\n');
  expect(JSON.parse(answer)).toMatchObject({ object: 'chat.completion', model: 'sandbox-1' });
  presignedUrl = url;
  expect(presignedUrl).toMatch(
    new RegExp(`^http://127.0.0.1:${ports[1]}/llm/t/v4.public.*/v1/chat/completions$`),
  );
});

test('the TypeScript prints what the model said', async () => {
  expect(await run(process.execPath, ['--input-type=module', '-e', fence('ts')], HERE)).toContain('Hello');
});

const hasPythonSdk = spawnSync('python3', ['-c', 'import openai']).status === 0;
test.skipIf(!hasPythonSdk)('the Python prints what the model said', async () => {
  expect(await run('python3', ['-c', fence('python')], HERE)).toContain('Hello');
});

test('the fourth call answers 403 uses_exhausted', async () => {
  const ask = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const body = '{"model":"sandbox-1","messages":[{"role":"user","content":"Hello"}]}';
  const call = () => fetch(presignedUrl, { ...ask, body });
  if (!hasPythonSdk) expect((await call()).status).toBe(200);
  const fourth = await call();
  expect(fourth.status).toBe(403);
  expect(await fourth.json()).toMatchObject({ error: { code: 'uses_exhausted', limit: 3, used: 3 } });
});

test('every script that its commands name exists', () => {
  const commands = [...readme.matchAll(/^(?:npx -y pnpm@12|pnpm --filter @presign\/(\w+)) (\w+)/gm)];
  expect(commands.length).toBeGreaterThan(4);
  for (const [, app, script = ''] of commands) {
    const file = app === undefined ? 'package.json' : `apps/${app}/package.json`;
    const { scripts } = JSON.parse(readFileSync(new URL(file, ROOT), 'utf8')) as { scripts: object };
    expect(scripts, file).toHaveProperty(script);
  }
});

/** The only snippet of a language. */
function fence(language: string): string {
  const found = [...readme.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter(([, name]) => name === language);
  expect(found).toHaveLength(1);
  return found[0]?.[2] ?? '';
}

/** Runs a program to its end while the services in this process answer it; resolves with what it printed. */
async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const env = { PATH: process.env.PATH, PRESIGNED_URL: presignedUrl };
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  for await (const chunk of child.stdout) printed += String(chunk);
  return printed;
}
