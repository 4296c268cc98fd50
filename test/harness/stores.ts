import { randomBytes } from 'node:crypto';
import {
  connectRedis,
  drain,
  type RedisClient,
  type RedisTimeouts,
  redisReady,
  reopen,
} from '@presign/limits';
import { startEmbeddedPostgres, startEmbeddedRedis } from '@presign/local';
import { partitions } from '@presign/schema/ledger-tables';
import {
  addPartitions,
  connectDatabase,
  type Database,
  migrateDatabase,
  readDatabaseSettings,
} from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { Cluster } from 'ioredis';
import postgres from 'postgres';
import { embeddedTemplate } from './embedded-template.ts';

export type Stores = {
  readonly db: Database;
  readonly databaseUrl: string | undefined;
  readonly redisUrl: string;
  /** For the embedded Redis. It runs in this process, which the calls of a test may keep busy for longer than the default. */
  readonly redisTimeouts?: RedisTimeouts;
  readonly close: () => Promise<void>;
};

/**
 * The empty stores of one stack: this worker's embedded engines, or the servers of `TEST_DATABASE_URL` and
 * `TEST_REDIS_URL` (on each a database of its own).
 */
export async function startStores(redisUrl = process.env['TEST_REDIS_URL']): Promise<Stores> {
  const database = await startDatabase(process.env['TEST_DATABASE_URL']);
  const redis = await startRedis(redisUrl);
  return {
    ...database,
    redisUrl: redis.url,
    ...(redis.isEmbedded && { redisTimeouts: { connectMs: 60_000, commandMs: 60_000 } }),
    close: async () => {
      await redis.close();
      await database.close();
    },
  };
}

async function startDatabase(server: string | undefined) {
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

async function startRedis(server: string | undefined) {
  if (server === undefined || server === '')
    return { ...(await lend(redisEngines, startEmbeddedRedis, emptyRedis)), isEmbedded: true };
  const url = server.includes('+') ? server : `${server.replace(/\/\d*$/, '')}/${nextDatabase()}`;
  await emptyRedis({ url });
  return { url, close: async () => {}, isEmbedded: false };
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
  const { db, migrate, close } = await startEmbeddedPostgres(undefined, await embeddedTemplate());
  await migrate();
  return { db, databaseUrl: undefined, close };
}

/** Leaves what a migration leaves. */
async function emptyPostgres({ db }: Postgres): Promise<void> {
  const rows = await db.execute<{ name: string; bytes: number }>(
    sql`select quote_ident(relname) as name, pg_relation_size(oid)::int as bytes from pg_class
        where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  const names = rows.map(({ name }) => name);
  // To truncate takes 100 ms, to delete what one test leaves takes 5. Foreign keys would order the deletions.
  if (rows.some(({ bytes }) => bytes > DELETED_BYTES)) await db.execute(`truncate ${names.join()} cascade`);
  else
    await db.execute(
      `begin; set local session_replication_role = replica; ${names.map((name) => `delete from ${name}`).join('; ')}; commit`,
    );
  await addPartitions(db);
}

/** Deleted rows stay in a table's file, and its scans read them. */
const DELETED_BYTES = 256 * 1024;

/** Opens the partitions of empty stores at once. An issuer opens each in a transaction of its own. */
export async function openPartitions(db: Database, redis: RedisClient): Promise<void> {
  const opened = await db.update(partitions).set({ epoch: 1 }).returning();
  const open = async ({ id, epoch, lastId }: (typeof opened)[number]) => {
    await reopen(redis, id, epoch);
    await drain(redis, { partition: id, epoch, lastId }, 1);
  };
  await Promise.all(opened.map(open));
}
