import type { ServerResponse } from 'node:http';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { openTunnel, type Tunnel } from '../chaos/tunnel.ts';
import { eventually } from '../harness/eventually.ts';
import { type GatewayProcess, startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

/** Long enough for a busy machine to renew it in time. */
const LEASE_SECONDS = 9;

describe.skipIf(!hasRedisServer)('a call under concurrent_calls whose gateway loses Redis', () => {
  let redis: RedisServer;
  let tunnel: Tunnel;
  let provider: Upstream;
  let stack: Stack;
  let gateway: GatewayProcess;
  let url: string;
  /** Calls that the provider has, and the most there ever were at once. */
  const running = new Set<ServerResponse>();
  let most = 0;
  /** Takes the next call in place of an answer. */
  let keep: ((response: ServerResponse) => void) | undefined;
  beforeAll(async () => {
    redis = await makeRedis();
    tunnel = await openTunnel(redis.port);
    provider = await startUpstream((_seen, response) => {
      running.add(response);
      most = Math.max(most, running.size);
      response.once('close', () => running.delete(response));
      if (keep) keep(response);
      else response.writeHead(200).end('{}');
      keep = undefined;
    });
    stack = await startStack({
      providers: { openai: { base_url: provider.url } },
      redisUrl: `redis://127.0.0.1:${redis.port}/0`,
      gateway: { leaseMs: LEASE_SECONDS * 1_000 },
    });
    gateway = await startGatewayProcess(stack, {
      // The stack has a database of its own there.
      REDIS_URL: stack.redisUrl.replace(String(redis.port), String(tunnel.port)),
      HOLD_LEASE_SECONDS: String(LEASE_SECONDS),
    });
  });
  afterEach(() => tunnel.lead(redis.port));
  afterAll(async () => {
    await gateway.kill();
    await stack.close();
    await provider.close();
    tunnel.close();
    await redis.remove();
  });

  const post = async (to: string) => {
    const { statusCode, headers, body } = await request(to, { method: 'POST', body: '{}' });
    const retryAfter = headers['retry-after'];
    return { status: statusCode, retryAfter, text: await body.text().catch(() => 'broken off') };
  };
  /** Calls by way of the stack's gateway, which reaches Redis, until one is served. */
  const served = () => eventually(async () => (await post(url)).status === 200, 120_000);

  /** A call through the other gateway that the provider has and does not answer. */
  const startCall = () =>
    eventually(async () => {
      let response: ServerResponse | undefined;
      keep = (kept) => {
        response = kept;
      };
      const answered = post(url.replace(stack.gatewayUrls[0] ?? '', gateway.url));
      // A busy machine may answer late for Redis, also once. Such a call did not run.
      const early = await Promise.race([answered, eventually(async () => response && 'arrived')]);
      return response && early === 'arrived' ? { response, answered } : undefined;
    });
  const issue = async () => {
    ({ url } = await stack.issue({
      ...{ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' },
      concurrent_calls: 1,
    }));
    // The other gateway has no database, so this one loads the grant into Redis.
    await served();
    most = 0;
  };

  const losses: [string, () => void][] = [
    ['whose line falls silent', () => tunnel.silence()],
    ['whose connections are cut, and refused from then on', () => tunnel.lead(1)],
  ];
  test.each(thorough ? losses : losses.slice(0, 1))(
    '%s is cut before its lease ends, and only then another call takes its place',
    async (_how, lose) => {
      await issue();
      const { answered } = await startCall();
      lose();
      await served();
      expect(most).toBe(1);
      const { status, retryAfter, text } = await answered;
      expect({ status, retryAfter }).toEqual({ status: 503, retryAfter: '1' });
      expect(text).toContain('limits_unavailable');
    },
  );

  test.runIf(thorough)('in the middle of its answer gets a truncated answer', async () => {
    await issue();
    const { response, answered } = await startCall();
    response.writeHead(200, { 'content-type': 'application/octet-stream' }).write('begun');
    tunnel.silence();
    await served();
    expect(most).toBe(1);
    expect(await answered).toMatchObject({ status: 200, text: 'broken off' });
  });

  test.runIf(thorough)('and reconnects in time continues, for longer than a lease', async () => {
    await issue();
    const { response, answered } = await startCall();
    tunnel.lead(1);
    await eventually(async () => (await post(url)).status === 429);
    tunnel.lead(redis.port);
    const began = performance.now();
    await eventually(async () => {
      expect((await post(url)).status).not.toBe(200);
      return performance.now() - began > 2 * LEASE_SECONDS * 1_000;
    });
    expect(most).toBe(1);
    response.writeHead(200).end('whole');
    expect(await answered).toMatchObject({ status: 200, text: 'whole' });
  });
});
