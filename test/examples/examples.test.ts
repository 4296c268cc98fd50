import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readLocalEnv, runLocal } from '@presign/local';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../harness/free-port.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
const PYTHON = process.env.PYTHON ?? 'python3';
const hasPython = spawnSync(PYTHON, ['--version']).status === 0;

type Env = Record<string, string | undefined>;
let started: { readonly env: Env; readonly close: () => Promise<void> };
let env: Env;

beforeAll(async () => {
  started = await start();
  env = started.env;
});
afterAll(() => started.close());

/** What `start` runs, in a folder of its own, and the environment that leads a program to it. */
async function start(more: Env = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'presign-'));
  const [issuerPort, gatewayPort] = await Promise.all([freePort(), freePort()]);
  const settings = {
    PRESIGN_DATA_DIR: folder,
    ISSUER_PORT: String(issuerPort),
    GATEWAY_PORT: String(gatewayPort),
    ...more,
  };
  const local = await runLocal(readLocalEnv(settings), pino({ level: 'silent' }));
  const env = {
    PATH: process.env.PATH,
    ISSUER_URL: `http://127.0.0.1:${issuerPort}`,
    PRESIGN_API_KEY: local.keys.apiKey,
    MCP_SERVER_URL: local.sandboxMcpUrl,
  };
  const close = async () => {
    await local.close();
    rmSync(folder, { recursive: true });
  };
  return { env, close };
}

/** What it exits with and all that it prints. */
function run(program: string, args: string[], more: Env = {}) {
  return new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(program, args, { cwd: EXAMPLES, env: { ...env, ...more } }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, output: stdout + stderr }),
    );
  });
}

const typescript = (name: string, more?: Env) =>
  run(process.execPath, ['--import', 'tsx', `${name}/main.ts`], more);

describe.each([
  ['first-call', ['You said: Hello', 'Uses left: 2', 'not /v1/embeddings']],
  ['streaming', ['Tell me a story', 'pieces']],
  ['mcp', ['Tools: echo, add', '2 + 40 = 42', 'All uses of this URL are spent.']],
  ['out-of-budget', ['Ten calls at once', 'uses_exhausted: All uses of this URL are spent.']],
  ['customer-life', ['without ALLOW_PRIVATE_UPSTREAMS', '403 grant_revoked', '401 unauthenticated']],
] as const)('the example %s', (name, shown) => {
  test('runs to its end and shows what it is for', async () => {
    const { code, output } = await typescript(name);
    for (const text of shown) expect(output).toContain(text);
    expect(code).toBe(0);
  });

  test('exits with a failure when the issuer refuses it', async () => {
    const { code, output } = await typescript(name, { PRESIGN_API_KEY: 'wrong' });
    expect(code).toBe(1);
    expect(output).toContain('unauthenticated');
  });
});

test('the example customer-life receives and verifies events where `start` allows an endpoint on this machine', async () => {
  const open = await start({ ALLOW_PRIVATE_UPSTREAMS: 'true' });
  const { code, output } = await typescript('customer-life', open.env).finally(open.close);
  expect(output).toContain('Events, signed and verified, told the same costs.');
  expect(output).toContain('An event told of it.');
  expect(code).toBe(0);
});

describe.skipIf(!hasPython)('the example python', () => {
  test('runs to its end and shows what it is for', async () => {
    const { code, output } = await run(PYTHON, ['python/main.py']);
    expect(output).toContain('A third call: 403 uses_exhausted: All uses of this URL are spent.');
    expect(code).toBe(0);
  });

  test('exits with a failure when the issuer refuses it', async () => {
    const { code, output } = await run(PYTHON, ['python/main.py'], { PRESIGN_API_KEY: 'wrong' });
    expect(code).toBe(1);
    expect(output).toContain('401');
  });
});
