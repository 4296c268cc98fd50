import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateApiKey, generateEncryptionKey, generateSigningKey, readSigningKey } from '@presign/crypto';
import { connectRedis, type RedisClient, redisReady } from '@presign/limits';
import type { PresignAnswer } from '@presign/schema';
import { connectDatabase, type Database, migrateDatabase } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { removeFolder } from '../harness/remove-folder.ts';
import { GATEWAY_MAIN, ISSUER_MAIN } from '../issuer/issuer-process.ts';
import { makePostgres, type PostgresServer } from '../issuer/postgres-server.ts';
import { makeRedis, type RedisServer } from './redis-server.ts';
import { type Service, serviceOf } from './service.ts';
import { openTunnel, type Tunnel } from './tunnel.ts';

/** Everything in processes of their own: Postgres, Redis, an issuer and two gateways. */
export type World = Stores &
  Services & {
    readonly issue: (body: object) => Promise<string>;
    /** Something to be removed with the world. */
    readonly adopt: Adopt;
    readonly close: () => Promise<void>;
  };

type Stores = {
  readonly postgres: PostgresServer;
  readonly db: Database;
  /** The Redis to which everybody's way leads now. */
  readonly master: () => RedisServer;
  /** Leads everybody to another one. */
  readonly follow: (server: RedisServer) => void;
  /** Goes that way, too. */
  readonly redis: RedisClient;
  readonly redisUrl: string;
  readonly redisWay: Tunnel;
  /** The way of the services to Postgres. */
  readonly postgresWay: Tunnel;
};

type Services = {
  readonly issuer: Service;
  readonly gateways: readonly [Service, Service];
  readonly gatewayUrls: readonly [string, string];
  readonly issuerUrl: string;
  readonly apiKey: string;
  /** The ports of `/metrics`, by the name of the process. */
  readonly metricsPorts: Readonly<Record<'issuer' | 'gateway-1' | 'gateway-2', number>>;
};

type Adopt = (remove: () => Promise<unknown>) => void;

/** How long a hold outlives its gateway here. */
const LEASE_SECONDS = 2;

/** Replicas need not wait for others to come. */
const REDIS_SETTINGS = ['--appendfsync', 'always', '--repl-diskless-sync-delay', '0'];

/** With it, a commit that was answered is on the disk. */
const DURABLE = ['fsync', 'synchronous_commit', 'full_page_writes'];

/** Folders for the data of the stores, such as those of small disks. */
export type Places = {
  readonly postgres?: string;
  readonly redis?: string;
  /** Variables of all services. */
  readonly env?: Readonly<Record<string, string>>;
};

export async function startWorld(providers: object, places: Places = {}): Promise<World> {
  const removals: Parameters<Adopt>[0][] = [];
  const adopt: Adopt = (remove) => void removals.push(remove);
  const close = async () => {
    for (const remove of removals.splice(0).reverse()) await remove();
  };
  try {
    const stores = await startStores(adopt, places);
    const services = await startServices(stores, providers, adopt, places.env);
    const issue = (body: object) => issueAt(services.issuerUrl, services.apiKey, body);
    return { ...stores, ...services, issue, adopt, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startStores(adopt: Adopt, places: Places): Promise<Stores> {
  const postgres = await makePostgres({ parent: places.postgres });
  adopt(postgres.remove);
  await migrateDatabase(postgres.url);
  const { db, close: closeDatabase } = connectDatabase(postgres.url);
  adopt(() => closeDatabase().catch(() => {}));
  await mustBeDurable(db);
  const postgresWay = await openTunnel(Number(new URL(postgres.url).port));
  adopt(async () => postgresWay.close());
  // Redis takes the last of two settings of one name.
  let server = await makeRedis(...REDIS_SETTINGS, ...(places.redis ? ['--dir', places.redis] : []));
  adopt(server.remove);
  const way = await openTunnel(server.port);
  adopt(async () => way.close());
  const redisUrl = `redis://127.0.0.1:${way.port}`;
  const redis = connectRedis(redisUrl, () => {});
  adopt(async () => redis.disconnect());
  await redisReady(redis);
  const follow = (other: RedisServer) => {
    server = other;
    way.lead(other.port);
  };
  return { postgres, postgresWay, db, master: () => server, follow, redis, redisUrl, redisWay: way };
}

async function mustBeDurable(db: Database): Promise<void> {
  const columns = { name: sql<string>`name`, setting: sql<string>`setting` };
  const rows = await db.select(columns).from(sql`pg_settings`);
  const off = rows.filter(({ name, setting }) => DURABLE.includes(name) && setting !== 'on');
  if (off.length > 0) throw new Error(`Postgres would lose commits: ${off.map(({ name }) => name)} is off`);
}

async function startServices(
  stores: Stores,
  providers: object,
  adopt: Adopt,
  more: Places['env'] = {},
): Promise<Services> {
  const folder = mkdtempSync(join(tmpdir(), 'presign-chaos-'));
  adopt(() => removeFolder(folder));
  writeFileSync(join(folder, 'providers.json'), JSON.stringify(providers));
  const [signing, apiKey] = [generateSigningKey(), generateApiKey()];
  const [issuerPort, first, second] = await Promise.all([freePort(), freePort(), freePort()]);
  const metricsPorts = {
    issuer: await freePort(),
    'gateway-1': await freePort(),
    'gateway-2': await freePort(),
  };
  const gatewayUrls = [`http://127.0.0.1:${first}`, `http://127.0.0.1:${second}`] as const;
  const env = {
    HOST: '127.0.0.1',
    LOG_LEVEL: 'error',
    GATEWAY_URL: gatewayUrls[0],
    DATABASE_URL: Object.assign(new URL(stores.postgres.url), { port: String(stores.postgresWay.port) }).href,
    REDIS_URL: stores.redisUrl,
    ENCRYPTION_KEYS: generateEncryptionKey('k1'),
    PROVIDERS_FILE: join(folder, 'providers.json'),
    ...more,
  };
  const issuerEnv = {
    ISSUER_PORT: String(issuerPort),
    METRICS_PORT: String(metricsPorts.issuer),
    TOKEN_SIGNING_KEY: signing,
    BOOTSTRAP_API_KEY: apiKey,
  };
  const gatewayEnv = {
    TOKEN_PUBLIC_KEYS: readSigningKey(signing).publicKey,
    ALLOW_PRIVATE_UPSTREAMS: 'true',
    HOLD_LEASE_SECONDS: String(LEASE_SECONDS),
    ...more,
  };
  const issuer = serviceOf(ISSUER_MAIN, { ...env, ...issuerEnv }, issuerPort);
  const gatewayOf = (port: number, metrics: number) => {
    const ports = { GATEWAY_PORT: String(port), METRICS_PORT: String(metrics) };
    return serviceOf(GATEWAY_MAIN, { ...env, ...gatewayEnv, ...ports }, port);
  };
  const gateways = [
    gatewayOf(first, metricsPorts['gateway-1']),
    gatewayOf(second, metricsPorts['gateway-2']),
  ] as const;
  const all = [issuer, ...gateways];
  adopt(() => Promise.all(all.map((each) => each.kill())));
  await Promise.all(all.map((each) => each.start()));
  await Promise.all(gatewayUrls.map((url) => eventually(() => hasNoProblems(url))));
  return { issuer, gateways, gatewayUrls, issuerUrl: `http://127.0.0.1:${issuerPort}`, apiKey, metricsPorts };
}

/** A gateway answers before the issuer has opened each partition of an empty Redis. */
async function hasNoProblems(gatewayUrl: string): Promise<boolean> {
  const answer = await fetch(`${gatewayUrl}/readyz`);
  return ((await answer.json()) as { problems: unknown[] }).problems.length === 0;
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
