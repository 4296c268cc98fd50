import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readLocalEnv, runLocal } from '@presign/local';
import { pino } from 'pino';
import { prepareDataFolder } from '../harness/embedded-template.ts';
import { freePort } from '../harness/free-port.ts';

export const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
const PYTHON = process.env.PYTHON ?? 'python3';
export const hasRequests = spawnSync(PYTHON, ['-c', 'import requests']).status === 0;

export type Env = Record<string, string | undefined>;
export type Command = readonly [program: string, ...args: string[]];

/** How to run an example in the folder of the examples. */
export const commandOf = (name: string): Command =>
  name === 'python-backend'
    ? [PYTHON, `${name}/main.py`]
    : [process.execPath, '--import', 'tsx', `${name}/main.ts`];

export type Started = {
  /** The environment that leads a program to the services. */
  readonly env: Env & { readonly ISSUER_URL: string; readonly PRESIGN_API_KEY: string };
  readonly gatewayPort: number;
  readonly close: () => Promise<void>;
};

/** The services that `start` runs, in a folder of its own. */
export async function startForExamples(more: Env = {}): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'presign-'));
  const [issuerPort, gatewayPort] = await Promise.all([freePort(), freePort()]);
  const settings = {
    PRESIGN_DATA_DIR: folder,
    ISSUER_PORT: String(issuerPort),
    GATEWAY_PORT: String(gatewayPort),
    ...more,
  };
  await prepareDataFolder(folder);
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
  return { env, gatewayPort, close };
}
