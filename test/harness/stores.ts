import { randomBytes } from 'node:crypto';
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
 * and `TEST_REDIS_URL` (emptied first: test files run one after another).
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
    const { db, close } = await openEmbeddedPostgres(undefined);
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
  const url = server.includes('+') ? server : `${server.replace(/\/\d*$/, '')}/${database++ % DATABASES}`;
  const client = connectRedis(url, () => {});
  await redisReady(client);
  await flush(client);
  client.disconnect();
  return { url, close: async () => {} };
}

/** Stacks of one file each have a numbered database of their own; a server has 16 (Redis Cluster has one). */
const DATABASES = 16;
let database = 0;

/** Empties a stack's Redis: its database, or every master of a Cluster. */
export async function flush(client: RedisClient): Promise<void> {
  if (client instanceof Cluster) await Promise.all(client.nodes('master').map((node) => node.flushall()));
  else await client.flushdb();
}
