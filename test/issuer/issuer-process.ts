import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { generateApiKey, generateEncryptionKey, generateSigningKey } from '@presign/crypto';
import { freePort } from '../harness/free-port.ts';
import { until } from '../harness/gateway-process.ts';

export const ISSUER_MAIN = fileURLToPath(new URL('../../apps/issuer/src/main.ts', import.meta.url));
export const GATEWAY_MAIN = fileURLToPath(new URL('../../apps/gateway/src/main.ts', import.meta.url));

export type IssuerProcess = {
  readonly issuerUrl: string;
  readonly apiKey: string;
  readonly env: Readonly<Record<string, string>>;
  readonly child: ChildProcess;
  /** Its standard output so far: its log. */
  readonly log: () => string;
  readonly kill: (signal: NodeJS.Signals) => Promise<number | null>;
};

/** An issuer in a process of its own, with keys of its own. */
export async function startIssuerProcess(
  databaseUrl: string,
  redisUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<IssuerProcess> {
  const port = await freePort();
  const env = {
    HOST: '127.0.0.1',
    ISSUER_PORT: String(port),
    GATEWAY_URL: `http://127.0.0.1:${await freePort()}`,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl,
    TOKEN_SIGNING_KEY: generateSigningKey(),
    ENCRYPTION_KEYS: generateEncryptionKey('k1'),
    BOOTSTRAP_API_KEY: generateApiKey(),
    ...settings,
  };
  const child = run(ISSUER_MAIN, env);
  let log = '';
  child.stdout?.on('data', (chunk) => {
    log += String(chunk);
  });
  await until(child, 'issuer is ready');
  return {
    issuerUrl: `http://127.0.0.1:${port}`,
    apiKey: env.BOOTSTRAP_API_KEY,
    env,
    child,
    log: () => log,
    kill: async (signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const exited = once(child, 'exit');
      child.kill(signal);
      return ((await exited) as [number | null])[0];
    },
  };
}

/** A service's `main.ts` with this environment and nothing of the test's own. */
export function run(
  main: string,
  env: Readonly<Record<string, string | undefined>>,
  stderr: 'inherit' | 'pipe' = 'inherit',
): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', main], {
    stdio: ['ignore', 'pipe', stderr],
    env: { PATH: process.env.PATH, ...env },
  });
}
