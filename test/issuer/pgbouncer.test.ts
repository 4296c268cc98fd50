import { dropSeeds } from '@presign/limits';
import { startEmbeddedRedis } from '@presign/local';
import {
  connectDatabase,
  type Database,
  migrateDatabase,
  readDatabaseSettings,
} from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { startStack } from '../harness/stack.ts';
import { startUpstream } from '../harness/upstream.ts';
import { least, send } from './ask.ts';
import { presign } from './command.ts';
import { startIssuerProcess } from './issuer-process.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from './pgbouncer-process.ts';
import { hasPostgres, makePostgres, type PostgresServer } from './postgres-server.ts';

const wanted = hasPostgres && hasPgBouncer && Boolean(process.env.TEST_DATABASE_URL);

/** As docs/guides/run-it.md has it for a PgBouncer that knows no prepared statements. */
const SETTINGS = { DATABASE_PREPARE: 'false' };

// Three sessions of Postgres for all connections of a service, each taken in turn: no two transactions can rely on the same one.
describe.skipIf(!wanted)('through PgBouncer in transaction mode', () => {
  let server: PostgresServer;
  let bouncer: PgBouncer;
  let redis: Awaited<ReturnType<typeof startEmbeddedRedis>>;
  let direct: ReturnType<typeof connectDatabase>;

  beforeAll(async () => {
    server = await makePostgres();
    bouncer = await startPgBouncer(server);
    redis = await startEmbeddedRedis();
    direct = connectDatabase(server.url);
  });
  afterAll(async () => {
    await direct.close();
    await redis.close();
    await bouncer.stop();
    await server.remove();
  });

  test('two migrations at once succeed, and leave no lock', async () => {
    await Promise.all([migrateDatabase(bouncer.url), migrateDatabase(bouncer.url)]);
    expect(await first(direct.db, sql`select count(*)::text as n from partitions`)).toEqual({ n: '64' });
    const locks = sql`select count(*)::text as n from pg_locks where locktype = 'advisory'`;
    expect(await first(direct.db, locks)).toEqual({ n: '0' });
  });

  test('presign doctor names the statement timeout that PgBouncer drops', async () => {
    await migrateDatabase(bouncer.url);
    const ask = (url: string) =>
      presign(['doctor'], { ...SETTINGS, DATABASE_URL: url, REDIS_URL: redis.url });
    const says = 'statement_timeout is 0 ms instead of 10000: PgBouncer needs connect_query';
    expect((await ask(bouncer.url)).out).toContain(says);
    const direct = await ask(server.url);
    expect(direct.out).toContain('connections');
    expect(direct.out).not.toContain('PgBouncer');
  });

  test('an issuer with DATABASE_PREPARE=false issues 200 URLs, 20 at a time', async () => {
    await migrateDatabase(bouncer.url);
    const issuer = await startIssuerProcess(bouncer.url, redis.url, {
      ...SETTINGS,
      SHUTDOWN_DRAIN_SECONDS: '0',
    });
    for (let round = 0; round < 10; round++) {
      const asked = Array.from({ length: 20 }, (_, i) =>
        send(issuer, {
          body: least,
          headers: i % 4 === 0 ? { 'idempotency-key': `${round}-${i >> 3}` } : {},
        }),
      );
      for (const sent of await Promise.all(asked)) expect(sent.status, sent.text).toBe(200);
    }
    expect(await issuer.kill('SIGTERM')).toBe(0);
    expect(failures(issuer.log().split('\n'))).toEqual([]);
  });

  test('URLs are issued again after Postgres has restarted, and the refusal says so until then', async () => {
    await migrateDatabase(bouncer.url);
    const issuer = await startIssuerProcess(bouncer.url, redis.url, {
      ...SETTINGS,
      SHUTDOWN_DRAIN_SECONDS: '0',
    });
    expect((await send(issuer, { body: least })).status).toBe(200);
    await server.stop('SIGQUIT');
    const refused = await send(issuer, { body: least });
    expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([503, 'database_unavailable']);
    await server.start();
    await eventually(async () => (await send(issuer, { body: least })).status === 200);
    await issuer.kill('SIGTERM');
  });

  test('calls pass, bundles are issued, and the ledger has each call once', async () => {
    await migrateDatabase(bouncer.url);
    const upstream = await startUpstream((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end('{"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}');
    });
    const pooled = connectDatabase(bouncer.url, readDatabaseSettings(SETTINGS));
    const stack = await startStack({
      providers: {
        openai: { base_url: upstream.url, pricing: { m: { input: 1_000_000, output: 1_000_000 } } },
      },
      gateways: 2,
      stores: { db: pooled.db, databaseUrl: bouncer.url, redisUrl: redis.url, close: pooled.close },
    });
    const asked = Array.from({ length: 40 }, () => stack.issue({ ...least, cost_limit: 1_000, max_uses: 1 }));
    const issued = await Promise.all(asked);
    await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        stack.issueMcp({
          servers: [...'abc'].slice(0, 1 + (i % 3)).map((name) => ({ name, url: 'https://a.example/mcp' })),
        }),
      ),
    );
    // Without seeds, each first call reads Postgres.
    await dropSeeds(stack.redis);
    const body = JSON.stringify({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });
    const headers = { 'content-type': 'application/json' };
    const called = await Promise.all(
      issued.map(({ url }, i) => {
        const gateway = stack.gatewayUrls[i % 2] ?? '';
        return fetch(url.replace(stack.gatewayUrls[0] ?? '', gateway), { method: 'POST', headers, body });
      }),
    );
    expect(called.map(({ status }) => status)).toEqual(issued.map(() => 200));
    await callsSettled(stack);
    const calls = sql`select count(*)::text as n, sum(cost_microusd)::text as cost from ledger`;
    expect(await first(direct.db, calls)).toEqual({ n: '40', cost: '800' });
    const [{ session_id } = { session_id: '' }] = issued;
    expect((await send(stack, { method: 'DELETE', path: `/v1/sessions/${session_id}` })).status).toBe(204);
    const usage = await send(stack, {
      method: 'GET',
      path: '/v1/usage?group_by=provider&from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z',
    });
    expect(JSON.parse(usage.text)).toMatchObject({ data: [{ calls: 40, cost: 800 }] });
    expect(failures(stack.logs)).toEqual([]);
    await stack.close();
    await upstream.close();
  });
});

const failures = (lines: readonly string[]) => lines.filter((line) => /"level":[56]0/.test(line));

const first = async (db: Database, query: ReturnType<typeof sql>) => (await db.execute(query))[0];
