import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { generateApiKey, generateEncryptionKey, generateSigningKey } from '@presign/crypto';
import { openTunnel } from '../chaos/tunnel.ts';
import { freePort } from '../harness/free-port.ts';
import { until } from '../harness/gateway-process.ts';
import { entryPoint } from '../harness/service-bundles.ts';
import type { Stack } from '../harness/stack.ts';

export const ISSUER_MAIN = entryPoint('issuer', 'main');
export const GATEWAY_MAIN = entryPoint('gateway', 'main');

export type IssuerProcess = {
  readonly issuerUrl: string;
  readonly apiKey: string;
  readonly env: Readonly<Record<string, string>>;
  readonly child: ChildProcess;
  /** Its standard output so far: its log. */
  readonly log: () => string;
  readonly kill: (signal: NodeJS.Signals) => Promise<number | null>;
};

/**
 * An issuer in a process of its own, with keys of its own.
 * @param onSpawn called before it is ready
 */
export async function startIssuerProcess(
  databaseUrl: string,
  redisUrl: string,
  settings: Readonly<Record<string, string>> = {},
  onSpawn: (child: ChildProcess) => void = () => {},
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
  onSpawn(child);
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

/** An issuer of this stack in a process of its own. Redis is silent to it, so it can be killed between Postgres and Redis. */
export async function startCutOffIssuer(stack: Stack) {
  const redis = new URL(stack.redisUrl);
  const tunnel = await openTunnel(Number(redis.port));
  redis.port = String(tunnel.port);
  const issuer = await startIssuerProcess(stack.databaseUrl ?? '', redis.href, {
    GATEWAY_URL: stack.gatewayUrls[0] ?? '',
    TOKEN_SIGNING_KEY: stack.keys.signing,
    ENCRYPTION_KEYS: stack.keys.encryption,
    BOOTSTRAP_API_KEY: stack.apiKey,
  });
  tunnel.silence();
  return { ...issuer, close: () => tunnel.close() };
}

/** An entry point with this environment and nothing of the test's own. */
export function run(
  main: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  stderr: 'inherit' | 'pipe' = 'inherit',
): ChildProcess {
  return spawn(process.execPath, main, {
    stdio: ['ignore', 'pipe', stderr],
    env: { PATH: process.env.PATH, ...env },
  });
}
