import type { ServerResponse } from 'node:http';
import { keys } from '@presign/limits';
import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { eventually } from '../harness/eventually.ts';
import { type GatewayProcess, startGatewayProcess, until } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { grantIn } from '../mcp/holder.ts';
import { timeRecovery } from '../outages/recovery.ts';
import { OK, type Providers, startProviders } from './providers.ts';

const LEASE_SECONDS = 2;
/** Blocks the event loop for three leases when the process gets SIGUSR2. It leaves the core to other tests. */
const BUSY = `data:text/javascript,
  import { writeSync } from 'node:fs';
  process.on('SIGUSR2', () => {
    writeSync(1, 'busy');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${LEASE_SECONDS * 3_000});
    writeSync(1, 'idle');
  });`;

describe.skipIf(!hasRedisServer)('the lease of a call, swept by another gateway,', () => {
  let redis: RedisServer;
  let providers: Providers;
  let stack: Stack;
  let gateway: GatewayProcess;
  beforeAll(async () => {
    redis = await makeRedis();
    providers = await startProviders();
    stack = await startStack({
      providers: providers.file,
      redisUrl: `redis://127.0.0.1:${redis.port}/0`,
      gateway: { leaseMs: LEASE_SECONDS * 1_000 },
    });
    gateway = await startGatewayProcess(stack, {
      HOLD_LEASE_SECONDS: String(LEASE_SECONDS),
      NODE_OPTIONS: `--import ${BUSY.replace(/\s+/g, '%20')}`,
    });
  });
  afterAll(async () => {
    await gateway.kill();
    await stack.close();
    await providers.close();
    await redis.remove();
  });

  /** A call through the gateway process, which the provider has got and not answered. */
  const startCall = async () => {
    const { url } = await stack.issue({
      provider: 'openai',
      path: '/v1/x',
      client_api_key: 'sk-real',
      max_uses: 9,
    });
    // The process has no database, so another gateway loads the grant into Redis.
    providers.answer = OK;
    await (await request(url, { method: 'POST', body: '{}' })).body.dump();
    const arrived = new Promise<ServerResponse>((resolve) => {
      providers.answer = (_seen, response) => resolve(response);
    });
    const answered = request(url.replace(stack.gatewayUrls[0] ?? '', gateway.url), {
      method: 'POST',
      body: '{}',
    });
    return { grant: grantIn(new URL(url).pathname.split('/')[3] ?? ''), response: await arrived, answered };
  };
  const lastOutcome = (grantId: string) =>
    eventually(async () => {
      await stack.issuer.ledger.drainAll();
      const rows = await stack.db
        .select()
        .from(ledger)
        .where(eq(ledger.grantId, grantId))
        .orderBy(ledger.settledAt);
      return rows[1]?.outcome;
    });

  test('outlives an event loop that is blocked for three leases', async () => {
    const { grant, response, answered } = await startCall();
    const idle = until(gateway.child, 'idle');
    gateway.child.kill('SIGUSR2');
    await idle;
    expect(await stack.redis.zcard(keys.leases(grant.partition))).toBe(1);
    response.end('{"ok":true}');
    expect((await answered).statusCode).toBe(200);
    expect(await lastOutcome(grant.id)).toBe('settled');
  });

  test('ends when the process is frozen', async () => {
    const { grant, response, answered } = await startCall();
    gateway.child.kill('SIGSTOP');
    expect(await lastOutcome(grant.id)).toBe('expired');
    gateway.child.kill('SIGCONT');
    const recovered = timeRecovery('Gateway: frozen (SIGSTOP)');
    response.end('{"ok":true}');
    expect((await answered).statusCode).toBe(200);
    recovered();
  });
});

test('a gateway whose thread cannot start renews leases in its event loop', async () => {
  const providers = await startProviders();
  const gateway = { redisUrl: 'malformed', leaseMs: 3_000 };
  const stack = await startStack({ providers: providers.file, gateway });
  const { url } = await stack.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' });
  const arrived = new Promise<ServerResponse>((resolve) => {
    providers.answer = (_seen, response) => resolve(response);
  });
  const answered = request(url, { method: 'POST', body: '{}' });
  const response = await arrived;
  const leases = keys.leases(grantIn(new URL(url).pathname.split('/')[3] ?? '').partition);
  const end = async () => Number((await stack.redis.zrange(leases, '0', '0', 'WITHSCORES'))[1]);
  const first = await end();
  await eventually(async () => ((await end()) > first + 3_000 ? true : undefined));
  response.end('{"ok":true}');
  expect((await answered).statusCode).toBe(200);
  // It says so once the thread has tried to start.
  await eventually(async () => stack.logs.join().includes('the thread that renews leases failed'));
  await stack.close();
  await providers.close();
});
