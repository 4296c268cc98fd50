import { type EncryptionKeys, readEncryptionKeys } from '@presign/crypto';
import { connectRedis, type RedisClient, redisReady } from '@presign/limits';
import { accounts } from '@presign/schema/tables';
import { addressOf, MALFORMED, parseVariable, readRedisTimeouts, readVariable } from '@presign/service';
import { connectDatabase, type Database, readDatabaseSettings } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import * as z from 'zod';
import { FIRST_ACCOUNT } from '../keys/bootstrap.ts';
import { CommandError, type Io } from './command.ts';

/** How long Redis may take to answer. */
const READY_MS = 5_000;

/** Runs `work` with a connection to Postgres, and closes it. */
export async function withDatabase<T>({ env }: Io, work: (db: Database) => Promise<T>): Promise<T> {
  const url = readVariable(env, 'DATABASE_URL');
  const { db, close } = connectDatabase(url, readDatabaseSettings(env));
  return work(db).finally(close);
}

/** Runs `work` with connections to both stores, and closes them. */
export async function withStores<T>(
  io: Io,
  work: (stores: { readonly db: Database; readonly redis: RedisClient }) => Promise<T>,
): Promise<T> {
  const url = readVariable(io.env, 'REDIS_URL');
  return withDatabase(io, async (db) => {
    const connect = () => connectRedis(url, () => {}, readRedisTimeouts(io.env));
    const redis = parseVariable('REDIS_URL', connect, MALFORMED);
    const ready = redisReady(redis, READY_MS).catch(() => {
      throw new CommandError(`REDIS_URL: ${addressOf(url)} does not answer`);
    });
    return ready.then(() => work({ db, redis })).finally(() => redis.disconnect());
  });
}

/** The keys that seal and unseal stored values. */
export function encryptionKeysOf({ env }: Io): EncryptionKeys {
  const text = readVariable(env, 'ENCRYPTION_KEYS');
  return parseVariable('ENCRYPTION_KEYS', () => readEncryptionKeys(text));
}

/**
 * The account of a command: the one that it names, or the operator's own. The latter is created if it does not exist, so
 * that a command can create the very first key.
 * @throws CommandError when the account does not exist
 */
export async function accountOf(db: Database, named: string | undefined): Promise<string> {
  if (named === undefined) {
    await db.insert(accounts).values({ id: FIRST_ACCOUNT, name: 'default' }).onConflictDoNothing();
    return FIRST_ACCOUNT;
  }
  const id = z.guid().safeParse(named).data;
  const [account] = id === undefined ? [] : await db.select().from(accounts).where(eq(accounts.id, id));
  if (!account) throw new CommandError('--account: no account has this id; see accounts list');
  return account.id;
}

/** The option that names an account. */
export const ACCOUNT = {
  account: { value: 'ID', about: "the owner; without it the operator's own account" },
};
