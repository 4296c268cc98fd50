import type { ChildProcess } from 'node:child_process';
import { connectRedis, readHealth, redisReady } from '@presign/limits';
import { connectDatabase, migrateDatabase } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { canStrike } from '../chaos/strike-all.ts';
import { openTunnel, type Tunnel } from '../chaos/tunnel.ts';
import { eventually } from '../harness/eventually.ts';
import { least, send } from '../issuer/ask.ts';
import { type IssuerProcess, startIssuerProcess } from '../issuer/issuer-process.ts';
import { makePostgres, type PostgresServer } from '../issuer/postgres-server.ts';
import { timeRecovery } from './recovery.ts';

// Makes servers of its own: where servers are to be used at all, and their programs are here.
const wanted = canStrike && Boolean(process.env.TEST_DATABASE_URL);

/** Postgres ends a transaction that is idle for three times this. */
const STATEMENT_SECONDS = 2;

describe.skipIf(!wanted)('an issuer that is suspended while it moves calls to the ledger', () => {
  let postgres: PostgresServer;
  let database: ReturnType<typeof connectDatabase>;
  let redis: RedisServer;
  let slowWay: Tunnel;
  let frozen: ChildProcess;
  let other: IssuerProcess;
  beforeAll(async () => {
    postgres = await makePostgres();
    await migrateDatabase(postgres.url);
    database = connectDatabase(postgres.url);
    redis = await makeRedis();
    // A transaction of the issuer waits this long for Redis, so that it can be met inside.
    slowWay = await openTunnel(redis.port, 500);
  });
  afterAll(async () => {
    await other.kill('SIGKILL');
    frozen.kill('SIGKILL');
    slowWay.close();
    await database.close();
    await redis.remove();
    await postgres.remove();
  });

  const idle = async () => {
    const query = sql`select pid::text from pg_stat_activity where state = 'idle in transaction'`;
    return (await database.db.execute(query)).length;
  };

  test('keeps no lock: another issuer opens every partition, and the first issuer works when it resumes', async () => {
    const settings = { DATABASE_STATEMENT_TIMEOUT_SECONDS: String(STATEMENT_SECONDS) };
    const url = `redis://127.0.0.1:${slowWay.port}`;
    const first = await startIssuerProcess(postgres.url, url, settings, (child) => {
      frozen = child;
    });
    const client = connectRedis(`redis://127.0.0.1:${redis.port}`, () => {});
    await redisReady(client);
    // An empty Redis: the issuer opens every partition, each in a transaction.
    await client.flushall();
    await eventually(async () => {
      if ((await idle()) === 0) return false;
      frozen.kill('SIGSTOP');
      // It may have ended its transactions before it stood still.
      if ((await idle()) > 0) return true;
      frozen.kill('SIGCONT');
      return false;
    });

    const recovered = timeRecovery(
      `issuer: frozen in a transaction, ${3 * STATEMENT_SECONDS} s of idle time`,
    );
    other = await startIssuerProcess(postgres.url, `redis://127.0.0.1:${redis.port}`);
    await eventually(async () => (await readHealth(client, 64)).open === 64);
    recovered();
    expect((await send(other, { body: least })).status).toBe(200);
    client.disconnect();

    frozen.kill('SIGCONT');
    await eventually(async () => (await send(first, { body: least })).status === 200);
  });
});
