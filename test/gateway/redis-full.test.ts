import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis, type RedisServer } from '../chaos/redis-server.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, grantIn, outcomes, post, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';
import { timeRecovery } from '../outages/recovery.ts';
import { OK, type Providers, startProviders } from './providers.ts';

describe.skipIf(!hasRedisServer)('while Redis has no memory left', () => {
  let redis: RedisServer;
  let providers: Providers;
  let servers: McpUpstream;
  let stack: Stack;
  beforeAll(async () => {
    redis = await makeRedis();
    providers = await startProviders();
    servers = await startMcpUpstream();
    const redisUrl = `redis://127.0.0.1:${redis.port}/0`;
    stack = await startStack({ providers: providers.file, redisUrl });
  });
  afterAll(async () => {
    await stack.close();
    await servers.close();
    await providers.close();
    await redis.remove();
  });

  const setLimit = (bytes: number) => redis.command('CONFIG', 'SET', 'maxmemory', String(bytes));
  const keyCount = () => redis.command('DBSIZE');
  const issue = async () =>
    (await stack.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real', max_uses: 2 })).url;
  const call = async (url: string) => {
    const answer = await request(url, { method: 'POST', body: '{}' });
    const body = (await answer.body.json()) as { error?: { code: string } };
    return body.error?.code ?? answer.statusCode;
  };

  test('calls are refused as an outage, leave nothing behind, and pass again afterwards', async () => {
    const [known, fresh] = [await issue(), await issue()];
    expect(await call(known)).toBe(200);
    providers.seen.length = 0;
    await stack.issuer.ledger.drainAll();
    await setLimit(1_000_000);
    const keys = await keyCount();
    for (const url of [known, fresh, known]) expect(await call(url)).toBe('limits_unavailable');
    expect(providers.seen).toHaveLength(0);
    expect(await keyCount()).toBe(keys);
    await setLimit(0);
    const recovered = timeRecovery('Redis: memory is full');
    expect(await call(known)).toBe(200);
    recovered();
    expect(await call(known)).toBe('uses_exhausted');
    expect(await call(fresh)).toBe(200);
  });

  test('free requests to an MCP server are refused, too', async () => {
    const url = urlOf(
      await stack.issueMcp({ servers: [{ name: 'a', url: servers.url, transport: 'http' }], max_uses: 1 }),
      'a',
    );
    expect(outcomes(await post(url, ask('ping')))).toEqual(['ran']);
    const arrived = servers.arrived.length;
    await setLimit(1_000_000);
    for (const message of [ask('ping'), toolCall('run')])
      expect(outcomes(await post(url, message))).toEqual(['limits_unavailable']);
    await setLimit(0);
    expect(servers.arrived).toHaveLength(arrived);
    expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  });

  test('a further round of an MCP call is refused as an outage, even after its URL has ended', async () => {
    servers.behaves = ({ method, body }, response) => {
      if (method !== 'POST') return false;
      const { id } = JSON.parse(body) as { id: number };
      const result = { resultType: 'input_required', inputRequests: {}, requestState: 'state' };
      response.setHeader('content-type', 'application/json');
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    };
    let aheadMs = 0;
    const gateway = await stack.addGateway({ now: () => Date.now() + aheadMs });
    const issued = await stack.issueMcp({
      servers: [{ name: 'a', url: servers.url, transport: 'http' }],
      ...{ max_uses: 1, expires_in: 60 },
    });
    const url = gateway + urlOf(issued, 'a').slice(stack.gatewayUrls[0]?.length);
    const asked = toolCall('run');
    const round = (requestState?: string) => {
      const further = requestState && { requestState, inputResponses: {} };
      const params = { ...asked.params, ...further };
      return post(url, { ...asked, params }, { 'mcp-protocol-version': '2026-07-28' });
    };
    const { messages } = await round();
    const { requestState } = (messages[0]?.result ?? {}) as { requestState?: string };
    await setLimit(1_000_000);
    for (const ms of [0, 61_000]) {
      aheadMs = ms;
      expect(outcomes(await round(requestState))).toEqual(['limits_unavailable']);
    }
    await setLimit(0);
    expect(outcomes(await round(requestState))).toEqual(['ran']);
    expect(outcomes(await round(requestState))).toEqual(['token_expired']);
    servers.behaves = undefined;
  });

  test('an admitted call is settled, and its URL can be revoked', async () => {
    const url = await issue();
    providers.answer = async (seen, response, body) => {
      await setLimit(1_000_000);
      return OK(seen, response, body);
    };
    expect(await call(url)).toBe(200);
    await stack.issuer.ledger.drainAll();
    const { id } = grantIn(new URL(url).pathname.split('/')[3] ?? '');
    const revoked = await request(`${stack.issuerUrl}/v1/grants/${id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    expect(revoked.statusCode).toBe(204);
    await setLimit(0);
    expect(await call(url)).toBe('grant_revoked');
  });
});
