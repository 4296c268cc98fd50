import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { readEncryptionKeys, readPublicKeys, readSigningKey } from '@presign/crypto';
import { startGateway } from '@presign/gateway';
import { connectRedis, redisReady } from '@presign/limits';
import { startEmbeddedRedis } from '@presign/local';
import type { PresignAnswer } from '@presign/schema';
import { budgets, credentials, grants, sessions } from '@presign/schema/tables';
import { connectDatabase, migrateDatabase, readDatabaseSettings } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { startUpstream } from '../harness/upstream.ts';
import { timeRecovery } from '../outages/recovery.ts';
import { least, refused, type Sent, send } from './ask.ts';
import { type IssuerProcess, startIssuerProcess } from './issuer-process.ts';
import { hasPostgres, makePostgres, type PostgresServer } from './postgres-server.ts';

// Needs a Postgres that may be stopped: made here, where servers are to be used at all.
const wanted = hasPostgres && Boolean(process.env.TEST_DATABASE_URL);

describe.skipIf(!wanted)('a Postgres server', () => {
  let server: PostgresServer;
  let redis: Awaited<ReturnType<typeof startEmbeddedRedis>>;
  const closers: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    server = await makePostgres();
    await migrateDatabase(server.url);
    redis = await startEmbeddedRedis();
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });
  afterAll(async () => {
    await redis.close();
    await server.remove();
  });

  const start = async (databaseUrl = server.url) => {
    const issuer = await startIssuerProcess(databaseUrl, redis.url);
    closers.push(() => issuer.kill('SIGKILL'));
    return issuer;
  };
  const ask = (issuer: IssuerProcess, headers: Record<string, string> = {}) =>
    send(issuer, { body: least, headers });
  const recovered = (issuer: IssuerProcess) =>
    eventually(async () => ((await ask(issuer)).status === 200 ? true : undefined));

  /** All that stands in Postgres of issued grants; fails if any lacks a part. */
  async function wholeGrants(): Promise<Set<string>> {
    const { db, close } = connectDatabase(server.url, readDatabaseSettings({ DATABASE_POOL_SIZE: '1' }));
    const whole = await db
      .select({ id: grants.id })
      .from(grants)
      .innerJoin(budgets, eq(budgets.id, grants.budgetId))
      .innerJoin(sessions, eq(sessions.id, grants.sessionId))
      .innerJoin(credentials, eq(credentials.id, grants.credentialId));
    const counts = [
      await db.$count(grants),
      await db.$count(budgets),
      await db.$count(credentials),
      await db.$count(sessions),
    ];
    await close();
    expect(counts).toEqual(counts.map(() => whole.length));
    return new Set(whole.map((row) => row.id));
  }

  const grantOf = (sent: Sent): string => {
    const [payload = ''] = ((JSON.parse(sent.text) as PresignAnswer).url.split('v4.public.')[1] ?? '').split(
      '.',
    );
    return (JSON.parse(Buffer.from(payload, 'base64url').subarray(0, -64).toString()) as { jti: string }).jti;
  };

  test('that is down causes 503 database_unavailable until it is back', async () => {
    const issuer = await start();
    expect((await ask(issuer)).status).toBe(200);
    await server.stop();
    for (const headers of [{}, { 'idempotency-key': 'k1' }]) {
      const sent = await ask(issuer, headers);
      expect(refused(sent, 'database_unavailable')).toBe('The database does not answer. Try again.');
      expect(sent.headers.get('retry-after')).toBe('1');
    }
    const ready = await send(issuer, { method: 'GET', path: '/readyz' });
    expect([ready.status, JSON.parse(ready.text)]).toEqual([
      503,
      {
        status: 'unready',
        problems: [expect.objectContaining({ store: 'postgres', problem: 'does not answer' })],
      },
    ]);
    expect((await send(issuer, { method: 'GET', path: '/healthz' })).status).toBe(200);
    await server.start();
    const printRecovery = timeRecovery('Postgres: stopped');
    await recovered(issuer);
    printRecovery();
    // It keeps what Postgres answered for a second.
    await eventually(async () => (await send(issuer, { method: 'GET', path: '/readyz' })).status === 200);
    expect((await ask(issuer, { 'idempotency-key': 'k1' })).status).toBe(200);
    expect(issuer.log()).not.toContain(least.client_api_key);
    expect(issuer.log()).not.toContain(issuer.apiKey);
  });

  test.each(['SIGINT', 'SIGQUIT'] as const)(
    'that restarts (%s) while URLs are issued: each request gets a complete URL or 503',
    async (signal) => {
      const issuer = await start();
      const sent: Sent[] = [];
      let over = false;
      const loop = async (key: number) => {
        for (let i = 0; !over; i++)
          sent.push(await ask(issuer, key % 2 ? { 'idempotency-key': `${signal}${key}.${i}` } : {}));
      };
      const loops = Array.from({ length: 12 }, (_, key) => loop(key));
      await eventually(async () => (sent.length > 30 ? true : undefined));
      await server.stop(signal);
      await eventually(async () => (sent.some((each) => each.status !== 200) ? true : undefined));
      await server.start();
      const printRecovery = timeRecovery(`Postgres: restarted (${signal})`);
      await recovered(issuer);
      printRecovery();
      over = true;
      await Promise.all(loops);

      for (const each of sent.filter(({ status }) => status !== 200)) refused(each, 'database_unavailable');
      const written = await wholeGrants();
      const answered = sent.filter(({ status }) => status === 200).map(grantOf);
      expect(answered.filter((id) => !written.has(id))).toEqual([]);
    },
  );

  test('that never answers causes 503, too', async () => {
    const tunnel = await openTunnel(server.url);
    closers.push(tunnel.close);
    const issuer = await start(tunnel.url);
    expect((await ask(issuer)).status).toBe(200);
    tunnel.swallow(true);
    const all = await Promise.all([ask(issuer), ask(issuer, { 'idempotency-key': 'k2' })]);
    for (const sent of all) refused(sent, 'database_unavailable');
    expect((await send(issuer, { method: 'GET', path: '/readyz' })).status).toBe(503);
    tunnel.swallow(false);
    const printRecovery = timeRecovery('Postgres: never answers');
    await recovered(issuer);
    printRecovery();
    await wholeGrants();
  });

  test('keeps every URL that was answered before kill -9 of the issuer, and nothing half-written', async () => {
    const upstream = await startUpstream();
    closers.push(upstream.close);
    const issuer = await start();
    const sent: Sent[] = [];
    const loop = async (key: number) => {
      const headers: Record<string, string> = key % 2 ? { 'idempotency-key': `kill${key}` } : {};
      for (let i = 0; ; i++)
        sent.push(await ask(issuer, key % 2 ? { ...headers, 'idempotency-key': `kill${key}.${i}` } : {}));
    };
    const loops = Array.from({ length: 16 }, (_, key) => loop(key).catch(() => {}));
    await eventually(async () => (sent.length > 100 ? true : undefined));
    await issuer.kill('SIGKILL');
    await Promise.all(loops);

    const written = await wholeGrants();
    expect(sent.every(({ status }) => status === 200)).toBe(true);
    expect(sent.map(grantOf).filter((id) => !written.has(id))).toEqual([]);

    const gateway = await gatewayOf(issuer, upstream.url);
    for (const each of sent.slice(-10)) {
      const { url } = JSON.parse(each.text) as PresignAnswer;
      expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(200);
    }
    await gateway.close({ graceMs: 1000 });
  });

  /** A gateway for an issuer's URLs; the partitions that it needs are open since the issuer's start. */
  async function gatewayOf({ env }: IssuerProcess, upstreamUrl: string) {
    const { db, close } = connectDatabase(server.url);
    const client = connectRedis(redis.url, () => {});
    await redisReady(client);
    closers.push(close, async () => client.disconnect());
    const url = new URL(env['GATEWAY_URL'] ?? '');
    const deps = {
      db,
      redis: client,
      publicKeys: readPublicKeys(readSigningKey(env['TOKEN_SIGNING_KEY'] ?? '').publicKey),
      encryptionKeys: readEncryptionKeys(env['ENCRYPTION_KEYS'] ?? ''),
      providersFile: JSON.stringify({ openai: { base_url: upstreamUrl } }),
      gatewayUrl: url.origin,
      allowPrivateUpstreams: true,
      leaseMs: 60_000,
      upstreamTimeoutMs: 60_000,
      maxHeldBodyBytes: 128 * 1024 * 1024,
      maxBodyBytes: 16 * 1024 * 1024,
      mcpPrices: { byServer: new Map(), defaultMicrousd: 1_000 },
      now: Date.now,
      log: pino({ level: 'silent' }),
    };
    return startGateway(deps, { host: '127.0.0.1', port: Number(url.port) });
  }
});

/** A way to a server that can be made to swallow everything, as a network does. */
async function openTunnel(url: string) {
  const target = new URL(url);
  let swallowing = false;
  const sockets = new Set<Socket>();
  const server = createServer((inner) => {
    const outer = connectTcp(Number(target.port), target.hostname);
    for (const [from, to] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => void (swallowing || to.write(chunk)));
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: Object.assign(new URL(url), { port: String(port) }).href,
    swallow: (on: boolean) => {
      swallowing = on;
      // The swallowed bytes are gone: such a connection is of no use any more, and the network ends it.
      if (!on) for (const socket of sockets) socket.destroy();
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await sleep(0);
      server.close();
    },
  };
}
