import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runProgram } from '../harness/run-program.ts';
import { codeIn } from './fences.ts';
import { type Local, startLocalForDocs } from './local.ts';
import { makeReaderFolder, TSX } from './reader-folder.ts';

const page = readFileSync(new URL('../../docs/guides/typescript-client.md', import.meta.url), 'utf8');

let local: Local;
/** The folder of a reader who has installed the packages that the page names. */
let reader: string;
beforeAll(async () => {
  local = await startLocalForDocs();
  reader = await makeReaderFolder(['openai', '@types/node']);
  const program = codeIn(page, 'ts').join('\n');
  writeFileSync(join(reader, 'program.mts'), local.here(program));
});
afterAll(async () => {
  await local.close();
  rmSync(reader, { recursive: true });
});

test('the page runs as one program, and does what it says', async () => {
  const env = { PRESIGN_API_KEY: local.keys.apiKey };
  const { out: stdout } = await runProgram(process.execPath, [...TSX, 'program.mts'], { cwd: reader, env });
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/^http:.*\/llm\/t\/.*\/v1\/chat\/completions$/),
    'active',
    expect.stringContaining('You said: Hello'),
    "[ 'sandbox' ]",
    expect.stringMatching(/^[\da-f-]{36} 3$/),
    ...usageOf(stdout),
    expect.stringMatching(/^\d since then$/),
    expect.stringMatching(/^400 invalid_request max_uses [\da-f-]{36}$/),
    '400',
    '',
  ]);
});

/** The one call in the bill, if it has reached the ledger by then. */
const usageOf = (stdout: string): string[] =>
  stdout.split('\n').filter((line) => /^user-42, sandbox-1: 1 calls, \d+ microdollars$/.test(line));

test('the page has no type errors', () => {
  const tsc = fileURLToPath(new URL('../node_modules/typescript/bin/tsc', import.meta.url));
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2023', '--types', 'node'];
  const args = [tsc, ...options, '--skipLibCheck', 'program.mts'];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: reader, encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, '']);
});
