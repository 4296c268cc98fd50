import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether tests may fetch programs that are too large to be dependencies of everybody's. */
export const mayFetch = process.env.TEST_MCP_FETCH === 'true';

/** Those programs, each with what runs it where this Node is too old for it. */
export const FETCHED = {
  supergateway: ['supergateway@4.0.0'],
  'mcp-proxy': ['mcp-proxy@6.7.19'],
  codex: ['@openai/codex@0.169.0'],
  gemini: ['@google/gemini-cli@0.61.0'],
  claude: ['@anthropic-ai/claude-code@2.1.197'],
  'mcp-inspector': ['@modelcontextprotocol/inspector@2.12.0', 'node@24'],
} as const;

export type Fetched = keyof typeof FETCHED;

/** The arguments with which npx runs one of them. */
export const npxArgs = (program: Fetched, args: readonly string[]): string[] => [
  '-y',
  ...FETCHED[program].flatMap((name) => ['-p', name]),
  program,
  ...args,
];

export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** Runs a program to its end, in a folder of its own that is also its `HOME` unless it says otherwise. */
export function runProgram(file: string, args: readonly string[], env: Env = {}): Promise<Ran> {
  const home = mkdtempSync(join(tmpdir(), 'presign-client-'));
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      { cwd: home, env: { ...process.env, ...env }, timeout: 120_000 },
      (error, stdout, stderr) => {
        rmSync(home, { recursive: true, force: true });
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
      },
    );
  });
}

type Env = Readonly<Record<string, string>>;

/** Starts a program that goes on until it is closed, in a process group of its own: npx begins others. */
export function startProgram(program: Fetched, args: readonly string[]): { close: () => Promise<void> } {
  const child = spawn('npx', npxArgs(program, args), { detached: true, stdio: 'ignore' });
  return {
    close: async () => {
      const ended = child.exitCode === null ? once(child, 'exit') : undefined;
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
      await ended;
    },
  };
}
