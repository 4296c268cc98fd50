import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunningLocal, readLocalEnv, runLocal } from '@presign/local';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../harness/free-port.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
const PYTHON = process.env.PYTHON ?? 'python3';
const hasPython = spawnSync(PYTHON, ['--version']).status === 0;

let folder: string;
let local: RunningLocal;
let env: Record<string, string | undefined>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'presign-'));
  const [issuerPort, gatewayPort] = await Promise.all([freePort(), freePort()]);
  const settings = {
    PRESIGN_DATA_DIR: folder,
    ISSUER_PORT: String(issuerPort),
    GATEWAY_PORT: String(gatewayPort),
  };
  local = await runLocal(readLocalEnv(settings), pino({ level: 'silent' }));
  env = {
    PATH: process.env.PATH,
    ISSUER_URL: `http://127.0.0.1:${issuerPort}`,
    PRESIGN_API_KEY: local.keys.apiKey,
    MCP_SERVER_URL: local.sandboxMcpUrl,
  };
});
afterAll(async () => {
  await local.close();
  rmSync(folder, { recursive: true });
});

/** What it exits with and all that it prints. */
function run(program: string, args: string[], more: Record<string, string> = {}) {
  return new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(program, args, { cwd: EXAMPLES, env: { ...env, ...more } }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, output: stdout + stderr }),
    );
  });
}

const typescript = (name: string, more?: Record<string, string>) =>
  run(process.execPath, ['--import', 'tsx', `${name}/main.ts`], more);

describe.each([
  ['first-call', ['You said: Hello', 'Uses left: 2', 'not /v1/embeddings']],
  ['streaming', ['Tell me a story', 'pieces']],
  ['mcp', ['Tools: echo, add', '2 + 40 = 42', 'All uses of this URL are spent.']],
  ['out-of-budget', ['Ten calls at once', 'uses_exhausted: All uses of this URL are spent.']],
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
