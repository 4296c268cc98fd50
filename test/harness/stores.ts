import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { connectRedis, type RedisClient, redisReady } from '@presign/limits';
import { migrateEmbedded, openEmbeddedPostgres, startEmbeddedRedis } from '@presign/local';
import { connectDatabase, type Database, migrateDatabase } from '@presign/schema/database';
import { Cluster } from 'ioredis';
import postgres from 'postgres';

export type Stores = {
  readonly db: Database;
  readonly databaseUrl: string | undefined;
  readonly redisUrl: string;
  readonly close: () => Promise<void>;
};

/**
 * The stores of one stack: embedded engines, or the servers of `TEST_DATABASE_URL` (a database of its own)
 * and `TEST_REDIS_URL` (a database of its own, emptied first).
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
  if (server === undefined || server === '') {
    const template = process.env.EMBEDDED_POSTGRES_TEMPLATE;
    const begin = template === undefined ? undefined : new Blob([await readFile(template)]);
    const { db, close } = await openEmbeddedPostgres(undefined, begin);
    await migrateEmbedded(db);
    return { db: db as Database, databaseUrl: undefined, close };
  }
  const name = `presign_test_${randomBytes(6).toString('hex')}`;
  const admin = postgres(server, { max: 1, onnotice: () => {} });
  await admin`create database ${admin(name)}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  await migrateDatabase(url.href);
  const { db, close } = connectDatabase(url.href);
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
  if (server === undefined || server === '') return startEmbeddedRedis();
  const url = server.includes('+') ? server : `${server.replace(/\/\d*$/, '')}/${nextDatabase()}`;
  const client = connectRedis(url, () => {});
  await redisReady(client);
  await flush(client);
  client.disconnect();
  return { url, close: async () => {} };
}

/** A server has 16 databases (Redis Cluster has one): half for the stacks of each of two files at once. */
const DATABASES = 8;
let database = 0;
const nextDatabase = () =>
  (Number(process.env.VITEST_POOL_ID ?? 0) % 2) * DATABASES + (database++ % DATABASES);

/** Empties a stack's Redis: its database, or every master of a Cluster. */
export async function flush(client: RedisClient): Promise<void> {
  if (client instanceof Cluster) await Promise.all(client.nodes('master').map((node) => node.flushall()));
  else await client.flushdb();
}
