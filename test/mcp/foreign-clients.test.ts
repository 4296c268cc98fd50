import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startSandboxMcp } from '@presign/local';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { removeFolder } from '../harness/remove-folder.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { JAVASCRIPT_LOADER, PYTHON_LOADERS } from './config-loaders.ts';
import { type Fetched, mayFetch, npxArgs, type Ran, runProgram } from './fetched.ts';
import { connectRemote, MCP_REMOTE, remoteEnv } from './mcp-remote.ts';

const PYTHON = process.env.PYTHON ?? 'python3';

let stack: Stack;
let sandbox: Awaited<ReturnType<typeof startSandboxMcp>>;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'presign-clients-'));
  sandbox = await startSandboxMcp();
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(async () => {
  await stack?.close();
  await sandbox?.close();
  await removeFolder(folder);
});

/** A bundle of the sandbox over both transports, `modern` and `older`. */
const issueBoth = (max_uses = -1) =>
  stack.issueMcp({
    servers: [
      { name: 'modern', url: sandbox.url, transport: 'http' },
      { name: 'older', url: sandbox.sseUrl, transport: 'sse' },
    ],
    max_uses,
  });

describe('mcp-remote, started as the document for claude-desktop says', () => {
  test.each(['modern', 'older'])('runs tools of the server %s until its uses are spent', async (name) => {
    const { bundle_url } = await issueBoth(2);
    const client = await connectRemote(await remoteArgs(bundle_url, name), folder);
    const echo = () => client.callTool({ name: 'echo', arguments: { message: 'from afar' } });
    for (const _ of [1, 2]) expect(await echo()).toMatchObject({ content: [{ text: 'from afar' }] });
    await expect(echo()).rejects.toMatchObject({ data: { code: 'uses_exhausted', limit: 2, used: 2 } });
    await client.close();
  });

  test.each(['modern', 'older'])('stops on a changed token of %s, and starts no login', async (name) => {
    const args = await remoteArgs((await issueBoth()).bundle_url, name);
    const changed = args.map((arg) => arg.replace(/(token=v4\.public\.)./, '$1_'));
    const { code, stderr } = await runProgram(process.execPath, [MCP_REMOTE, ...changed], remoteEnv(folder));
    expect(code).toBe(1);
    expect(stderr).not.toMatch(/authoriz|browser/i);
  });
});

/** The arguments that claude_desktop_config.json gives npx, without `-y mcp-remote`. */
async function remoteArgs(bundleUrl: string, name: string): Promise<string[]> {
  const answer = await fetch(`${bundleUrl}?format=claude-desktop`);
  type Entry = { readonly command: string; readonly args: readonly string[] };
  const { mcpServers } = (await answer.json()) as { mcpServers: Record<string, Entry> };
  const [yes, program, ...args] = mcpServers[name]?.args ?? [];
  expect([mcpServers[name]?.command, yes, program]).toEqual(['npx', '-y', 'mcp-remote']);
  return args;
}

describe.skipIf(!mayFetch)('the inspector', () => {
  const inspect = (...args: string[]) =>
    runProgram('npx', npxArgs('mcp-inspector', ['--cli', ...args, ...CALL]), { HOME: folder });
  const CALL = ['--method', 'tools/call', '--tool-name', 'add', '--tool-arg', 'a=2', 'b=40'];

  test.each(['modern', 'older'])(
    'accepts the document for claude-code as its --config and calls %s',
    async (name) => {
      const { bundle_url } = await issueBoth();
      const file = join(folder, 'mcp.json');
      writeFileSync(file, await (await fetch(`${bundle_url}?format=claude-code`)).text());
      const ran = await inspect('--config', file, '--server', name);
      expect(told(ran)).toContain('"42"');
    },
  );

  test.each(['modern', 'older'])('calls %s with its address alone', async (name) => {
    const { servers } = await issueBoth();
    const { url = '', transport = 'http' } = servers[name] ?? {};
    expect(told(await inspect('--server-url', url, '--transport', transport))).toContain('"42"');
  });
});

describe.skipIf(!mayFetch)('coding agents, by their own parsers', () => {
  /** Puts a format of the bundle where a client looks for its configuration, and lists the servers that it reads there. */
  async function list(program: Fetched, format: string, file: string, args: readonly string[]) {
    const { bundle_url, servers } = await issueBoth();
    const home = mkdtempSync(join(folder, 'home-'));
    mkdirSync(dirname(join(home, file)), { recursive: true });
    writeFileSync(join(home, file), await (await fetch(`${bundle_url}?format=${format}`)).text());
    const inHome = ['-c', 'cd "$HOME" && exec npx "$@"', 'sh', ...npxArgs(program, args)];
    const env = { HOME: home, GEMINI_CLI_TRUST_WORKSPACE: 'true' };
    const ran = await runProgram('sh', inHome, env);
    return { text: told(ran), lines: ran.stderr, servers };
  }

  test('Codex reads both servers of the document for codex', async () => {
    const { text, servers } = await list('codex', 'codex', '.codex/config.toml', ['mcp', 'list', '--json']);
    const modern = { type: 'streamable_http', url: servers.modern?.url };
    const older = { type: 'stdio', command: 'npx', args: expect.arrayContaining([servers.older?.url]) };
    expect(JSON.parse(text)).toMatchObject([
      { name: 'modern', transport: modern },
      { name: 'older', transport: older },
    ]);
  });

  test('Gemini CLI connects to both servers of the document for gemini-cli', async () => {
    const { lines, servers } = await list('gemini', 'gemini-cli', '.gemini/settings.json', ['mcp', 'list']);
    expect(lines).toContain(`modern: ${servers.modern?.url} (http) - Connected`);
    expect(lines).toContain(`older: ${servers.older?.url} (sse) - Connected`);
  });

  test('Claude Code reads both servers of the document for claude-code', async () => {
    const { text, servers } = await list('claude', 'claude-code', '.mcp.json', ['mcp', 'list']);
    expect(text).toContain(`modern: ${servers.modern?.url} (HTTP)`);
    expect(text).toContain(`older: ${servers.older?.url} (SSE)`);
  });
});

describe.skipIf(!mayFetch)('@langchain/mcp-adapters', () => {
  test('MultiServerMCPClient accepts the bundle unchanged', async () => {
    const home = mkdtempSync(join(folder, 'langchain-'));
    const packages = ['@langchain/mcp-adapters@1.1.4', '@langchain/core@1', '@langchain/langgraph@1'];
    const installed = await runProgram('npm', ['install', '--prefix', home, '--no-audit', ...packages]);
    expect(installed.code, installed.stderr).toBe(0);
    writeFileSync(join(home, 'load.mjs'), JAVASCRIPT_LOADER);
    const { bundle_url } = await issueBoth();
    expect(told(await runProgram(process.execPath, [join(home, 'load.mjs'), bundle_url]))).toContain('42 42');
  });
});

describe.each(PYTHON_LOADERS)('Python: %s', (module, program) => {
  const isThere = spawnSync(PYTHON, ['-c', `import ${module}`]).status === 0;
  test.skipIf(!isThere)('accepts the bundle unchanged', async () => {
    const { bundle_url } = await issueBoth();
    expect(told(await runProgram(PYTHON, ['-c', program, bundle_url]))).toContain('42 42');
  });
});

/** The output of a program. A program that failed shows its errors. */
function told({ code, stdout, stderr }: Ran): string {
  expect(code, stderr.slice(-2_000)).toBe(0);
  return stdout;
}
