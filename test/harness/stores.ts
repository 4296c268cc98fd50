import { randomBytes } from 'node:crypto';
import { connectRedis, type RedisClient, redisReady } from '@presign/limits';
import { migrateEmbedded, openEmbeddedPostgres, startEmbeddedRedis } from '@presign/local';
import {
  addPartitions,
  connectDatabase,
  type Database,
  migrateDatabase,
  readDatabaseSettings,
} from '@presign/schema/database';
import { Cluster } from 'ioredis';
import postgres from 'postgres';
import { embeddedTemplate } from './embedded-template.ts';

export type Stores = {
  readonly db: Database;
  readonly databaseUrl: string | undefined;
  readonly redisUrl: string;
  readonly close: () => Promise<void>;
};

/**
 * The empty stores of one stack: this worker's embedded engines, or the servers of `TEST_DATABASE_URL` and
 * `TEST_REDIS_URL` (on each a database of its own).
 */
export async function openStores(redisUrl = process.env['TEST_REDIS_URL']): Promise<Stores> {
  const database = await openDatabase(process.env['TEST_DATABASE_URL']);
  const redis = await openRedis(redisUrl);
  return {
    ...database,
    redisUrl: redis.url,
    close: async () => {
      await redis.close();
      await database.close();
    },
  };
}

async function openDatabase(server: string | undefined) {
  if (server === undefined || server === '') return lend(postgresEngines, startPostgres, emptyPostgres);
  const name = `presign_test_${randomBytes(6).toString('hex')}`;
  const admin = postgres(server, { max: 1, onnotice: () => {} });
  await admin`create database ${admin(name)}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  await migrateDatabase(url.href);
  const { db, close } = connectDatabase(url.href, readDatabaseSettings(process.env));
  return {
    db,
    databaseUrl: url.href,
    close: async () => {
      await close();
      await admin`drop database ${admin(name)} with (force)`;
      await admin.end();
    },
  };
}

async function openRedis(server: string | undefined) {
  if (server === undefined || server === '') return lend(redisEngines, startEmbeddedRedis, emptyRedis);
  const url = server.includes('+') ? server : `${server.replace(/\/\d*$/, '')}/${nextDatabase()}`;
  await emptyRedis({ url });
  return { url, close: async () => {} };
}

/** A Redis server has 16 databases (Redis Cluster has one): each of vitest's three workers uses five of them. */
const WORKERS = 3;
const DATABASES = 5;
let database = 0;
const nextDatabase = () =>
  (Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS) * DATABASES + (database++ % DATABASES);

async function emptyRedis({ url }: { readonly url: string }): Promise<void> {
  const client = connectRedis(url, () => {});
  await redisReady(client);
  await flush(client);
  client.disconnect();
}

/** Empties a stack's Redis: its database, or every master of a Cluster. */
export async function flush(client: RedisClient): Promise<void> {
  if (client instanceof Cluster) await Promise.all(client.nodes('master').map((node) => node.flushall()));
  else await client.flushdb();
}

type Engine = { readonly close: () => Promise<void> };
type Postgres = Awaited<ReturnType<typeof startPostgres>>;

/** This worker's embedded engines that no stack uses now. To start them takes longer than most files' tests. */
const postgresEngines: Postgres[] = [];
const redisEngines: Awaited<ReturnType<typeof startEmbeddedRedis>>[] = [];

/** Returns an idle engine, emptied, or a new one. Its `close` makes it idle. */
async function lend<T extends Engine>(
  idle: T[],
  start: () => Promise<T>,
  empty: (engine: T) => Promise<void>,
): Promise<T> {
  const used = idle.pop();
  if (used) await empty(used);
  const engine = used ?? (await start());
  return { ...engine, close: async () => void idle.push(engine) };
}

async function startPostgres() {
  const { pglite, db, close } = await openEmbeddedPostgres(undefined, await embeddedTemplate());
  await migrateEmbedded(db);
  return { pglite, db: db as Database, databaseUrl: undefined, close };
}

/** Leaves what a migration leaves. */
async function emptyPostgres({ pglite, db }: Postgres): Promise<void> {
  const { rows } = await pglite.query<{ name: string }>(
    `select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`,
  );
  await pglite.exec(`truncate ${rows.map(({ name }) => name).join()} restart identity cascade`);
  await addPartitions(db);
}
