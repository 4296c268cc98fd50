import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { eventually } from '../harness/eventually.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { ask, at, post, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';

const CALLS = thorough ? 1_000 : 250;
/** Long enough for a busy machine to renew it in time. A gateway ends no lease before its own first one is over. */
const LEASE_SECONDS = 15;
const forwarded = { provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' };

describe.skipIf(!hasRedisServer)('concurrent_calls', () => {
  let redis: RedisServer;
  let provider: Upstream;
  let server: McpUpstream;
  let stack: Stack;
  /** Calls that the provider has and has not answered, and the most there ever were. */
  let running = 0;
  let most = 0;
  const kept: ServerResponse[] = [];
  let keeps = false;
  const dispatcher = new Agent({ connections: 200 });
  beforeAll(async () => {
    redis = await makeRedis();
    provider = await startUpstream((_seen, response) => {
      most = Math.max(most, ++running);
      response.once('close', () => running--);
      if (keeps) kept.push(response);
      else setImmediate(() => response.writeHead(200).end('{}'));
    });
    server = await startMcpUpstream();
    stack = await startStack({
      gateways: 2,
      providers: { openai: { base_url: provider.url } },
      redisUrl: `redis://127.0.0.1:${redis.port}/0`,
      gateway: { leaseMs: LEASE_SECONDS * 1_000 },
    });
  });
  afterAll(async () => {
    await dispatcher.close();
    await stack.close();
    await Promise.all([provider.close(), server.close()]);
    await redis.remove();
  });

  const on = (url: string, gateway: string) => url.replace(stack.gatewayUrls[0] ?? '', gateway);
  const call = async (url: string) => {
    const { statusCode, headers, body } = await request(url, { method: 'POST', body: '{}', dispatcher });
    const { error } = (await body.json()) as { error?: { code: string; limit: number; message: string } };
    return { status: statusCode, error, retryAfter: headers['retry-after'] };
  };
  const served = (url: string) => eventually(async () => (await call(url)).status === 200);
  const keep = async (url: string) => {
    keeps = true;
    const before = kept.length;
    for (;;) {
      const answered = call(url);
      const arrived = eventually(async () => kept.length > before);
      const early = await Promise.race([answered, arrived]);
      if (early !== true) {
        // A busy machine may answer late for Redis. Such a call did not run.
        expect(early.error?.code).toBe('limits_unavailable');
        continue;
      }
      keeps = false;
      return { answered, response: kept.at(-1) };
    }
  };

  test('of many simultaneous calls over two gateways never more than 10 are at the provider, and all are served', async () => {
    const { url } = await stack.issue({ ...forwarded, concurrent_calls: 10 });
    most = 0;
    let refused = 0;
    const served = await Promise.all(
      Array.from({ length: CALLS }, async (_, i) => {
        for (;;) {
          const { status, error } = await call(on(url, stack.gatewayUrls[i % 2] ?? ''));
          if (status === 200) return status;
          // A busy machine may answer late for Redis. Such a call did not run.
          expect(error?.code).toMatch(/^(concurrency_limited|limits_unavailable)$/);
          if (error?.code === 'concurrency_limited') refused++;
          // A client that waits, so that this machine has time for those that run.
          await sleep(20);
        }
      }),
    );
    expect(served).toHaveLength(CALLS);
    expect(refused).toBeGreaterThan(0);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(10);
    const status = await fetch(url.slice(0, url.indexOf('/v1/')));
    expect(await status.json()).toMatchObject({ concurrent_calls: 10 });
  });

  test('a refusal names the limit, says when to try again, and costs no use', async () => {
    const { url } = await stack.issue({ ...forwarded, concurrent_calls: 1, max_uses: 2 });
    const { answered, response } = await keep(url);
    const refused = await call(url);
    expect(refused).toMatchObject({
      status: 429,
      retryAfter: expect.stringMatching(/^[1-9]\d?$/),
      error: { limit: 1 },
    });
    expect(refused.error?.message).toContain('concurrent_calls');
    response?.end('{}');
    expect((await answered).status).toBe(200);
    await served(url);
  });

  test.runIf(thorough)(
    'kill -9 of a gateway frees the places of its calls when their leases end',
    async () => {
      const { url } = await stack.issue({ ...forwarded, concurrent_calls: 2, max_uses: 100 });
      await served(url);
      const gateway = await startGatewayProcess(stack, { HOLD_LEASE_SECONDS: String(LEASE_SECONDS) });
      const calls = [await keep(on(url, gateway.url)), await keep(on(url, gateway.url))];
      const ended = Promise.allSettled(calls.map(({ answered }) => answered));
      await gateway.kill();
      await ended;
      expect((await call(url)).error?.code).toBe('concurrency_limited');
      await served(url);
      const again = await keep(url);
      await served(url);
      again.response?.end('{}');
      await again.answered;
    },
  );

  test('the servers of a bundle share it, and a call keeps its place until its answer has ended', async () => {
    const servers = ['a', 'b'].map((name) => ({ name, url: server.url, transport: 'http' }));
    const answer = await stack.issueMcp({ servers, concurrent_calls: 2, max_uses: 100 });
    const to = (name: string, gateway: number) =>
      at(stack, stack.gatewayUrls[gateway] ?? '', urlOf(answer, name));
    const waiting: (() => void)[] = [];
    server.behaves = ({ body }, response) => {
      if (!body.includes('"slow"')) return false;
      waiting.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end(answerTo(body)));
      return true;
    };
    const slow = [post(to('a', 0), toolCall('slow', 1)), post(to('b', 1), toolCall('slow', 2))];
    await eventually(async () => waiting.length === 2);
    for (const refused of [toolCall('run', 3), ask('tools/list')]) {
      const { status, messages, headers } = await post(to('b', 0), refused);
      expect(status).toBe(200);
      const wait = Number(headers['retry-after']);
      expect(wait).toBeGreaterThan(0);
      const error = { code: 'concurrency_limited', limit: 2, retry_after: wait };
      expect(messages[0]?.error?.data).toMatchObject(error);
    }
    const batch = await post(to('a', 1), [toolCall('run', 4), toolCall('run', 5), toolCall('run', 6)]);
    expect(batch.messages[0]?.error?.message).toContain('3 calls');
    for (const end of waiting) end();
    await Promise.all(slow);
    await eventually(async () => !(await post(to('a', 1), toolCall('run', 7))).messages[0]?.error);
    server.behaves = undefined;
  });

  test('a bundle with the older transport cannot have it, because no gateway sees when its calls end', async () => {
    const servers = [{ name: 'a', url: server.sseUrl, transport: 'sse' }];
    const answer = await stack.mcpPresign({ servers, concurrent_calls: 2 });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param: 'concurrent_calls' } });
  });
});

const answerTo = (body: string) => JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, result: {} });
