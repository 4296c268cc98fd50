import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pythonProgram } from './cases.ts';
import type { Toolchains } from './install.ts';

/** An MCP server in another language, with the tool `add` at `/mcp` and `/sse`. */
export type McpServer = { readonly name: string; readonly url: string; readonly close: () => Promise<void> };

/** Starts the servers that this machine has. */
export async function startMcpServers({ python, go }: Toolchains): Promise<readonly McpServer[]> {
  const starting: Promise<McpServer>[] = [];
  for (const [name, installed] of [
    ['Python mcp 1', python.mcp1],
    ['Python mcp 2', python.mcp2],
  ] as const) {
    if ('at' in installed) starting.push(start(name, installed.at, [pythonProgram('mcp_server')]));
  }
  if ('at' in go) starting.push(start('Go', join(go.at, 'mcp-server'), []));
  return Promise.all(starting);
}

/** Starts servers that keep sessions of their own: those of the first Python SDK. */
export async function startReplicas({ python: { mcp1 } }: Toolchains): Promise<readonly McpServer[]> {
  if ('skipped' in mcp1) return [];
  return Promise.all(['1', '2'].map((name) => start(name, mcp1.at, [pythonProgram('mcp_server')])));
}

/** Starts a program whose first line is its address. */
async function start(name: string, program: string, args: readonly string[]): Promise<McpServer> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const lines = createInterface(child.stdout);
  const [url] = (await once(lines, 'line')) as [string];
  const close = async () => {
    const ended = child.exitCode === null ? once(child, 'exit') : undefined;
    child.kill('SIGKILL');
    await ended;
  };
  return { name, url, close };
}
