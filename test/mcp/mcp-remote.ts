import { createRequire } from 'node:module';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const require = createRequire(import.meta.url);
export const MCP_REMOTE = require.resolve('mcp-remote/dist/proxy.js');

/** Where it would keep what it learns in a login. */
export const remoteEnv = (folder: string) => ({
  ...{ PATH: process.env.PATH ?? '', HOME: folder, MCP_REMOTE_CONFIG_DIR: folder },
});

/** A client of mcp-remote, as desktop programs start it. */
export async function connectRemote(args: readonly string[], folder: string): Promise<Client> {
  const client = new Client({ name: 'desktop', version: '1.0.0' });
  const command = { command: process.execPath, args: [MCP_REMOTE, ...args], stderr: 'ignore' as const };
  await client.connect(new StdioClientTransport({ ...command, env: remoteEnv(folder) }));
  return client;
}
