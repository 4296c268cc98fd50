import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type RunningLocal, readLocalEnv, runLocal } from '@presign/local';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../harness/free-port.ts';
import { sectionsOf } from './sections.ts';

const page = readFileSync(new URL('../../docs/guides/typescript-client.md', import.meta.url), 'utf8');
const run = promisify(execFile);

let folder: string;
let issuerPort: number;
let local: RunningLocal;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  const ports = await Promise.all([freePort(), freePort()]);
  [issuerPort] = ports;
  const env = readLocalEnv({
    PRESIGN_DATA_DIR: join(folder, '.presign'),
    ISSUER_PORT: String(ports[0]),
    GATEWAY_PORT: String(ports[1]),
  });
  local = await runLocal(env, pino({ level: 'silent' }));
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'));
  const program = sectionsOf(page)
    .map(({ fences }) => fences.get('ts') ?? '')
    .join('\n')
    .replace(':8787', `:${issuerPort}`)
    .replace('http://127.0.0.1:8790/mcp', local.sandboxMcpUrl ?? '');
  writeFileSync(join(folder, 'page.mts'), program);
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true });
});

test('the page, as one program, does what it says', async () => {
  const env = { PATH: process.env.PATH, PRESIGN_API_KEY: local.keys.apiKey };
  const { stdout } = await run(process.execPath, ['--import', 'tsx', 'page.mts'], { cwd: folder, env });
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/^http:.*\/llm\/t\/.*\/v1\/chat\/completions$/),
    'active',
    expect.stringContaining('You said: Hello'),
    "[ 'sandbox' ]",
    expect.stringMatching(/^[\da-f-]{36} 3$/),
    ...usageOf(stdout),
    expect.stringMatching(/^\d since then$/),
    expect.stringMatching(/^400 invalid_request max_uses [\da-f-]{36}$/),
    '',
  ]);
});

/** What the bill has of the one call, if the call has reached the ledger by then. */
const usageOf = (stdout: string): string[] =>
  stdout.split('\n').filter((line) => /^user-42, sandbox-1: 1 calls, \d+ microdollars$/.test(line));

test('and has no error of types', () => {
  const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2023', '--types', 'node'];
  const args = [tsc, ...options, '--skipLibCheck', '--allowImportingTsExtensions', 'page.mts'];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, '']);
});
