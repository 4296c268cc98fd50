import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { entryPoint } from './service-bundles.ts';
import type { Stack } from './stack.ts';

export type GatewayProcess = {
  readonly url: string;
  readonly child: ChildProcess;
  /** kill -9: nothing is settled, nothing is said. */
  readonly kill: () => Promise<void>;
  /** SIGTERM; resolves with the exit code. */
  readonly stop: () => Promise<number | null>;
};

/** No server listens here: a gateway that needs Postgres fails, one that finds its grants in Redis does not. */
const NO_DATABASE = 'postgres://nobody@127.0.0.1:1/none';

/** A gateway in a process of its own, in addition to those of the stack and for the same URLs. */
export async function startGatewayProcess(
  stack: Stack,
  env: Record<string, string> = {},
): Promise<GatewayProcess> {
  const port = Number(env.GATEWAY_PORT ?? (await freePort()));
  const providersFile = join(mkdtempSync(join(tmpdir(), 'presign-')), 'providers.json');
  writeFileSync(providersFile, stack.providersJson);
  const child = spawn(process.execPath, entryPoint('gateway', 'main'), {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      GATEWAY_URL: stack.gatewayUrls[0],
      DATABASE_URL: stack.databaseUrl ?? NO_DATABASE,
      REDIS_URL: stack.redisUrl,
      TOKEN_PUBLIC_KEYS: stack.keys.publicKeys,
      ENCRYPTION_KEYS: stack.keys.encryption,
      PROVIDERS_FILE: providersFile,
      ALLOW_PRIVATE_UPSTREAMS: 'true',
      SHUTDOWN_DRAIN_SECONDS: '0',
      ...(stack.redisTimeouts && {
        REDIS_COMMAND_TIMEOUT_SECONDS: String(stack.redisTimeouts.commandMs / 1_000),
      }),
      ...env,
    },
  });
  await until(child, 'gateway is ready');
  return {
    url: `http://127.0.0.1:${port}`,
    child,
    kill: () => end(child, 'SIGKILL').then(() => {}),
    stop: () => end(child, 'SIGTERM'),
  };
}

/** Waits for a text on standard output; rejects if the process ends first. */
export function until(child: ChildProcess, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      seen += String(chunk);
      if (seen.includes(text)) resolve(seen);
    });
    child.once('exit', () => reject(new Error(`ended before "${text}": ${seen}`)));
  });
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, 'exit');
  child.kill(signal);
  const [code] = (await exited) as [number | null];
  return code;
}
