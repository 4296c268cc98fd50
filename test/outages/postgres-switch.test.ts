import { startEmbeddedRedis } from '@presign/local';
import { connectDatabase, migrateDatabase } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTunnel, type Tunnel } from '../chaos/tunnel.ts';
import { eventually } from '../harness/eventually.ts';
import { least, refused, send } from '../issuer/ask.ts';
import { type IssuerProcess, startIssuerProcess } from '../issuer/issuer-process.ts';
import { hasPostgres, makePostgres, type PostgresServer } from '../issuer/postgres-server.ts';
import { timeRecovery } from './recovery.ts';

const wanted = hasPostgres && Boolean(process.env.TEST_DATABASE_URL);

describe.skipIf(!wanted)('after a Postgres failover to another server at the same address', () => {
  let servers: readonly [PostgresServer, PostgresServer];
  let address: Tunnel;
  let redis: Awaited<ReturnType<typeof startEmbeddedRedis>>;
  let issuer: IssuerProcess;
  beforeAll(async () => {
    const primary = await makePostgres();
    await migrateDatabase(primary.url);
    servers = [primary, await makePostgres({ primary })];
    address = await openTunnel(Number(new URL(primary.url).port));
    redis = await startEmbeddedRedis();
    const url = Object.assign(new URL(primary.url), { port: String(address.port) });
    issuer = await startIssuerProcess(url.href, redis.url);
  });
  afterAll(async () => {
    await issuer.kill('SIGKILL');
    address.close();
    await redis.close();
    for (const server of servers) await server.remove();
  });

  const first = async (server: PostgresServer, query: ReturnType<typeof sql>) => {
    const { db, close } = connectDatabase(server.url);
    return (await db.execute(query).finally(close))[0];
  };
  const hasAll = async ([primary, standby]: typeof servers) => {
    const written = await first(primary, sql`select pg_current_wal_flush_lsn()::text as at`);
    const at = written?.['at'] ?? '';
    const reached = sql`select (pg_last_wal_replay_lsn() >= ${at}::pg_lsn)::text as has`;
    return (await first(standby, reached))?.['has'] === 'true';
  };

  /** As many requests as the pool has connections. */
  const atOnce = () => Promise.all(Array.from({ length: 10 }, () => send(issuer, { body: least })));

  test('URLs are issued again without a restart, although old connections remain, and no URL is lost', async () => {
    const [primary, standby] = servers;
    expect((await send(issuer, { body: least })).status).toBe(200);
    await eventually(() => hasAll(servers));
    // The old primary comes back as a standby, and the issuer's connections are opened to it.
    await primary.stop();
    primary.demote();
    await primary.start();
    const sent = await eventually(async () => {
      const answer = await send(issuer, { body: least });
      return issuer.log().includes('25006') ? answer : undefined;
    });
    refused(sent, 'database_unavailable');
    // Takes every connection of the pool there, so that a new one cannot hide those that stay.
    for (const each of await atOnce()) refused(each, 'database_unavailable');
    await first(standby, sql`select pg_promote()`);
    const recovered = timeRecovery('Postgres: role switch behind one address');
    address.turn(Number(new URL(standby.url).port));
    await eventually(async () => (await atOnce()).every(({ status }) => status === 200));
    recovered();
    const count = await first(standby, sql`select count(*)::text as n from grants`);
    expect(Number(count?.['n'])).toBeGreaterThanOrEqual(2);
  });
});
