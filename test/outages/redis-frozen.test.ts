import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { OK, type Providers, startProviders } from '../gateway/providers.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { outcomes, post, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';
import { timeRecovery } from './recovery.ts';

/** A call waits this long for Redis here. */
const COMMAND_MS = 2_000;
/** So long that the gateway has replaced its connection more than once when Redis thaws. */
const FROZEN_MS = 2.5 * COMMAND_MS;

const TOO_MANY = (response: ServerResponse) =>
  response.writeHead(429, { 'content-type': 'application/json' }).end('{"error":{"code":"theirs"}}');

describe.skipIf(!hasRedisServer)('while a Redis server is suspended', () => {
  let redis: RedisServer;
  let providers: Providers;
  let servers: McpUpstream;
  let stack: Stack;
  beforeAll(async () => {
    redis = await makeRedis();
    providers = await startProviders();
    servers = await startMcpUpstream();
    stack = await startStack({
      providers: providers.file,
      redisUrl: `redis://127.0.0.1:${redis.port}/0`,
      redisTimeouts: { connectMs: COMMAND_MS, commandMs: COMMAND_MS },
    });
  });
  afterAll(async () => {
    redis.thaw();
    await stack.close();
    await servers.close();
    await providers.close();
    await redis.remove();
  });

  const issue = async (maxUses: number) =>
    (
      await stack.issue({
        provider: 'openai',
        path: '/v1/x',
        client_api_key: 'sk-real',
        max_uses: maxUses,
      })
    ).url;
  const call = async (url: string) => {
    const answer = await request(url, { method: 'POST', body: '{}' });
    const body = (await answer.body.json()) as { error?: { code: string } };
    return body.error?.code ?? answer.statusCode;
  };
  /** A call that the provider has got and not answered. */
  const start = async (url: string) => {
    const arrived = new Promise<ServerResponse>((resolve) => {
      providers.answer = (_seen, response) => resolve(response);
    });
    const answered = call(url);
    return { response: await arrived, answered };
  };
  const ended = (callOnce: () => Promise<unknown>) =>
    eventually(async () => {
      const is = await callOnce();
      return is === 'limits_unavailable' ? undefined : is;
    });

  test('its calls are refused as an outage, count nothing when it resumes, and running calls are settled once', async () => {
    const [used, returned, kept] = [await issue(2), await issue(1), await issue(2)];
    const bundle = await stack.issueMcp({
      servers: [{ name: 'a', url: servers.url, transport: 'http' }],
      max_uses: 2,
    });
    const callTool = async () => outcomes(await post(urlOf(bundle, 'a'), toolCall('run')))[0];
    expect([await call(used), await callTool()]).toEqual([200, 'ran']);
    const [refused, served] = [await start(returned), await start(kept)];
    providers.answer = OK;

    redis.freeze();
    TOO_MANY(refused.response);
    served.response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
    expect(await Promise.all([refused.answered, served.answered])).toEqual(['theirs', 200]);
    expect(await Promise.all([call(used), callTool()])).toEqual(['limits_unavailable', 'limits_unavailable']);
    await sleep(FROZEN_MS);
    redis.thaw();
    const recovered = timeRecovery('Redis: frozen (SIGSTOP)');
    const firsts = await Promise.all([
      ended(() => call(used)),
      ended(callTool),
      ended(() => call(returned)),
      ended(() => call(kept)),
    ]);
    recovered();

    expect(firsts).toEqual([200, 'ran', 200, 200]);
    for (const url of [used, returned, kept]) expect(await call(url)).toBe('uses_exhausted');
    expect(await callTool()).toBe('uses_exhausted');
  });
});
