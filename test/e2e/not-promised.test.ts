import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';

// SECURITY.md lists these under "Not promised". If one of them fails, the promise can be made: change the page.

let upstream: Upstream;
let server: McpUpstream;
let stack: Stack;
beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(), startMcpUpstream()]);
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await Promise.all([upstream.close(), server.close()]);
});

const ask = { provider: 'openai', client_api_key: 'sk-real', method: 'GET' };

test('URLs of one provider key reach the same stored objects, for any user', async () => {
  const path = '/v1/responses/resp_1';
  const urls = await Promise.all(
    ['user-1', 'user-2'].map((external_user) => stack.issue({ ...ask, path, external_user })),
  );
  for (const { url } of urls) expect((await fetch(url)).status).toBe(200);
  expect(upstream.seen.map(({ url, headers }) => [url, headers.authorization])).toEqual([
    [path, 'Bearer sk-real'],
    [path, 'Bearer sk-real'],
  ]);
});

test('the same URL works for two holders at once', async () => {
  const { url } = await stack.issue({ ...ask, path: '/v1/models' });
  const answers = await Promise.all(
    ['curl/8', 'Mozilla/5'].map((agent) => fetch(url, { headers: { 'user-agent': agent } })),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
});

test('calls with an invalid token, and requests with an invalid API key, have no rate limit', async () => {
  const calls = Array.from({ length: 200 }, () =>
    fetch(`${stack.gatewayUrls[0]}/llm/t/v4.public.AAAA/v1/models`),
  );
  const requests = Array.from({ length: 200 }, () =>
    fetch(`${stack.issuerUrl}/v1/sessions`, { headers: { authorization: 'Bearer presign_sk_wrong' } }),
  );
  const statuses = (await Promise.all([...calls, ...requests])).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([401]));
});

test('issuer and gateway speak plain HTTP, and refuse TLS', async () => {
  for (const url of [stack.issuerUrl, stack.gatewayUrls[0] ?? '']) {
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await expect(fetch(`${url.replace('http:', 'https:')}/healthz`)).rejects.toThrow('fetch failed');
  }
});

test('an MCP tool that quotes its credential in its own encoding shows it to the holder', async () => {
  const encoded = (text = '') => Buffer.from(text).toString('base64');
  server.behaves = ({ headers }, response) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { quoted: encoded(headers.authorization) } }));
  const bundle = await stack.issueMcp({
    servers: [
      {
        name: 'a',
        url: server.url,
        transport: 'http',
        auth_type: 'bearer',
        auth_config: { token: 'quoted-token' },
      },
    ],
  });
  const answer = await post(urlOf(bundle, 'a'), toolCall('run', 1));
  expect(answer.text).toContain(encoded('Bearer quoted-token'));
});
