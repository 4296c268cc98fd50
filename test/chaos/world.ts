import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateApiKey, generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';
import { connectRedis, type RedisClient, redisReady } from '@presign/limits';
import type { PresignAnswer } from '@presign/schema';
import { connectDatabase, type Database, migrateDatabase } from '@presign/schema/database';
import { freePort } from '../harness/free-port.ts';
import { GATEWAY_MAIN, ISSUER_MAIN, run } from '../issuer/issuer-process.ts';
import { makePostgres, type PostgresServer } from '../issuer/postgres-server.ts';
import { makeRedis, type RedisServer } from './redis-server.ts';
import { openTunnel, type Tunnel } from './tunnel.ts';

/** A service in a process of its own, which comes back at the same address. */
export type Service = {
  readonly start: () => Promise<void>;
  /** kill -9: nothing is settled, nothing is said. */
  readonly kill: () => Promise<void>;
};

/** Everything in processes of their own: Postgres, Redis, an issuer and two gateways. */
export type World = {
  readonly postgres: PostgresServer;
  readonly redisServer: RedisServer;
  /** The way to Redis of all services: it may lead elsewhere. */
  readonly way: Tunnel;
  readonly issuer: Service;
  readonly gateways: readonly [Service, Service];
  readonly gatewayUrls: readonly [string, string];
  readonly db: Database;
  readonly redis: RedisClient;
  readonly issue: (body: object) => Promise<string>;
  /** Something to be removed with the world. */
  readonly adopt: (remove: () => Promise<void>) => void;
  readonly close: () => Promise<void>;
};

/** How long a hold outlives its gateway here. */
const LEASE_SECONDS = 2;

/** Replicas need not wait for others to come. */
const REDIS_SETTINGS = ['--appendfsync', 'always', '--repl-diskless-sync-delay', '0'];

export async function startWorld(providers: object): Promise<World> {
  const [postgres, redisServer] = await Promise.all([makePostgres(), makeRedis(...REDIS_SETTINGS)]);
  await migrateDatabase(postgres.url);
  const way = await openTunnel(redisServer.port);
  const folder = mkdtempSync(join(tmpdir(), 'presign-chaos-'));
  writeFileSync(join(folder, 'providers.json'), JSON.stringify(providers));
  const [signing, apiKey] = [generateSigningKey(), generateApiKey()];
  const [issuerPort, first, second] = await Promise.all([freePort(), freePort(), freePort()]);
  const gatewayUrls = [`http://127.0.0.1:${first}`, `http://127.0.0.1:${second}`] as const;
  const env = {
    HOST: '127.0.0.1',
    LOG_LEVEL: 'error',
    GATEWAY_URL: gatewayUrls[0],
    DATABASE_URL: postgres.url,
    REDIS_URL: `redis://127.0.0.1:${way.port}`,
    ENCRYPTION_KEYS: generateEncryptionKey('k1'),
    PROVIDERS_FILE: join(folder, 'providers.json'),
  };
  const issuerEnv = {
    ISSUER_PORT: String(issuerPort),
    TOKEN_SIGNING_KEY: signing,
    BOOTSTRAP_API_KEY: apiKey,
  };
  const gatewayEnv = {
    TOKEN_PUBLIC_KEYS: readSigningKey(signing).publicKey,
    ALLOW_PRIVATE_UPSTREAMS: 'true',
    HOLD_LEASE_SECONDS: String(LEASE_SECONDS),
  };
  const issuer = serviceOf(ISSUER_MAIN, { ...env, ...issuerEnv }, issuerPort);
  const gatewayOf = (port: number) =>
    serviceOf(GATEWAY_MAIN, { ...env, ...gatewayEnv, GATEWAY_PORT: String(port) }, port);
  const gateways = [gatewayOf(first), gatewayOf(second)] as const;
  await Promise.all([issuer, ...gateways].map((each) => each.start()));
  const { db, close: closeDatabase } = connectDatabase(postgres.url);
  const redis = await connected(env.REDIS_URL);
  const adopted: (() => Promise<void>)[] = [];
  return {
    postgres,
    redisServer,
    way,
    adopt: (remove) => void adopted.push(remove),
    issuer,
    gateways,
    gatewayUrls,
    db,
    redis,
    issue: (body) => issueAt(`http://127.0.0.1:${issuerPort}`, apiKey, body),
    close: async () => {
      await Promise.all([issuer, ...gateways].map((each) => each.kill()));
      redis.disconnect();
      await closeDatabase().catch(() => {});
      way.close();
      for (const remove of adopted) await remove();
      await redisServer.remove();
      await postgres.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function connected(url: string): Promise<RedisClient> {
  const redis = connectRedis(url, () => {});
  await redisReady(redis);
  return redis;
}

async function issueAt(issuerUrl: string, apiKey: string, body: object): Promise<string> {
  const answer = await fetch(`${issuerUrl}/v1/presign`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== 200) throw new Error(`presign answered ${answer.status}: ${await answer.text()}`);
  return ((await answer.json()) as PresignAnswer).url;
}

function serviceOf(main: string, env: Record<string, string>, port: number): Service {
  let child: ChildProcess | undefined;
  const kill = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  const start = async () => {
    // Its log is silent, so that it is ready is seen from outside.
    child = run(main, env);
    child.stdout?.resume();
    await answers(`http://127.0.0.1:${port}/healthz`, child);
  };
  return { start, kill };
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`a service ended with ${child.exitCode}`);
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
