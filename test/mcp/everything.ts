import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { freePort } from '../harness/free-port.ts';

export type Everything = {
  /** The MCP endpoint. */
  readonly url: string;
  readonly close: () => Promise<void>;
};

const require = createRequire(import.meta.url);
/** The reference server that has every feature of the protocol, up to revision 2025-11-25. */
const PROGRAM = require.resolve('@modelcontextprotocol/server-everything/dist/index.js');

/** The reference server's names of the transports, the endpoint of each, and what it says when it listens. */
const TRANSPORTS = {
  http: { name: 'streamableHttp', path: '/mcp', ready: 'listening on port' },
  sse: { name: 'sse', path: '/sse', ready: 'running on port' },
} as const;

/** Starts the reference server in a process of its own. */
export async function startEverything(transport: keyof typeof TRANSPORTS): Promise<Everything> {
  const { name, path, ready } = TRANSPORTS[transport];
  const port = await freePort();
  const child = spawn(process.execPath, [PROGRAM, name], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await listening(child, ready);
  return {
    url: `http://127.0.0.1:${port}${path}`,
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Reads on for as long as the server runs: a full pipe would stop it. */
function listening(child: ChildProcess, ready: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      said = (said + String(chunk)).slice(-10_000);
      if (said.includes(ready)) resolve();
    });
    child.once('exit', () => reject(new Error(`ended before "${ready}": ${said}`)));
  });
}
