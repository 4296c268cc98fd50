import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RunningLocal, readLocalEnv, runLocal } from '@presign/local';
import { pino } from 'pino';
import { prepareDataFolder } from '../harness/embedded-template.ts';
import { freePort } from '../harness/free-port.ts';

/** The services that `pnpm start` runs, in a folder of its own, on ports of its own. */
export type Local = RunningLocal & {
  /** The reader's folder: `.presign` with the keys, and the packages that snippets import. */
  readonly folder: string;
  readonly issuerPort: number;
  readonly gatewayPort: number;
  /** A snippet with the addresses of this run in place of the default ones. */
  readonly here: (snippet: string) => string;
  /** Runs a program to its end while the services in this process answer it; resolves with its output. */
  readonly run: (program: string, args: readonly string[], env?: Record<string, string>) => Promise<string>;
};

/** @param settings further environment variables */
export async function startLocalForDocs(settings: Record<string, string> = {}): Promise<Local> {
  const folder = mkdtempSync(join(tmpdir(), 'presign-'));
  const [issuerPort, gatewayPort] = [await freePort(), await freePort()];
  const dataDir = join(folder, '.presign');
  await prepareDataFolder(dataDir);
  const env = readLocalEnv({
    PRESIGN_DATA_DIR: dataDir,
    ISSUER_PORT: String(issuerPort),
    GATEWAY_PORT: String(gatewayPort),
    ...settings,
  });
  const local = await runLocal(env, pino({ level: 'silent' }));
  symlinkSync(fileURLToPath(new URL('../node_modules', import.meta.url)), join(folder, 'node_modules'));
  return {
    ...local,
    folder,
    issuerPort,
    gatewayPort,
    here: (snippet) =>
      snippet
        .replaceAll(':8787', `:${issuerPort}`)
        .replaceAll('http://127.0.0.1:8790/mcp', local.sandboxMcpUrl ?? ''),
    run: (program, args, own = {}) => run(program, args, folder, { PATH: process.env.PATH, ...own }),
    close: async () => {
      await local.close();
      rmSync(folder, { recursive: true });
    },
  };
}

async function run(
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  for await (const chunk of child.stdout) printed += String(chunk);
  return printed;
}
