import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { openaiOptions } from '@presign/client';
import { connectRedis } from '@presign/limits';
import { readLocalEnv } from '@presign/local';
import { connectDatabase } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import OpenAI from 'openai';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../harness/free-port.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { drive } from '../mcp/clients-drive.ts';
import { openRoad } from '../mcp/clients-road.ts';
import { type Everything, startEverything } from '../mcp/everything.ts';
import { REAL_KEY } from '../sdk/keys.ts';

let upstream: Upstream;
let servers: Record<'http' | 'sse', Everything>;
let stack: Stack;

const CHAT = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'm',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'over IPv6' } }],
};

beforeAll(async () => {
  const [http, sse, provider] = await Promise.all([
    startEverything('http'),
    startEverything('sse'),
    startUpstream((_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(CHAT));
    }, '::1'),
  ]);
  [servers, upstream] = [{ http, sse }, provider];
  stack = await startStack({ providers: { openai: { base_url: upstream.url } }, host: '::1' });
});
afterAll(async () => {
  await stack.close();
  await Promise.all([servers.http, servers.sse, upstream].map((each) => each.close()));
});

const issue = () =>
  stack.issue({ provider: 'openai', path: '/v1/chat/completions', client_api_key: REAL_KEY, max_uses: 1 });
const HELLO = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };

test('services on ::1 issue URLs with [::1], and the OpenAI SDK calls a provider on ::1 through them', async () => {
  const issued = await issue();
  expect(issued.url).toMatch(/^http:\/\/\[::1\]:\d+\/llm\/t\//);
  const client = new OpenAI({ ...openaiOptions(issued), maxRetries: 0 });
  const { choices } = await client.chat.completions.create(HELLO);
  expect(choices[0]?.message.content).toBe('over IPv6');
  expect(upstream.seen.at(-1)?.headers.host).toBe(new URL(upstream.url).host);
  await expect(client.chat.completions.create(HELLO)).rejects.toMatchObject({ code: 'uses_exhausted' });
});

test.each(['http', 'sse'] as const)('an MCP client reaches a server on ::1 over %s', async (transport) => {
  const url = servers[transport].url.replace('127.0.0.1', '[::1]');
  const issued = await stack.issueMcp({ servers: [{ name: 'a', url, transport }], max_uses: 1 });
  const driven = await drive({
    generation: 'v1',
    transport,
    url: issued.servers.a?.url ?? '',
    road: openRoad(),
  });
  const answer = await driven.client.callTool({ name: 'echo', arguments: { message: 'Hello' } });
  expect(answer.content).toMatchObject([{ type: 'text', text: expect.stringContaining('Hello') }]);
  await driven.close();
});

test('a gateway without private addresses refuses an upstream on ::1 before it connects', async () => {
  const { url } = await issue();
  const guarded = await stack.addGateway({ allowPrivateUpstreams: false });
  const before = upstream.seen.length;
  const answer = await request(guarded + new URL(url).pathname, {
    method: 'POST',
    body: JSON.stringify(HELLO),
  });
  expect([answer.statusCode, await answer.body.json()]).toMatchObject([
    502,
    { error: { code: 'upstream_unreachable' } },
  ]);
  expect(upstream.seen).toHaveLength(before);
});

test('a gateway on :: is reached over IPv6 and IPv4', async () => {
  const port = await freePort();
  const gateway = await startGatewayProcess(stack, { HOST: '::', GATEWAY_PORT: String(port) });
  for (const host of ['[::1]', '127.0.0.1'])
    expect((await request(`http://${host}:${port}/healthz`)).statusCode).toBe(200);
  expect(await gateway.stop()).toBe(0);
});

test('`start` on ::1 prints URLs with [::1]', () => {
  expect(readLocalEnv({ HOST: '::1' })).toMatchObject({
    issuerUrl: 'http://[::1]:8787',
    gatewayUrl: 'http://[::1]:8788',
  });
});

test.each([
  ['redis://[::1]:PORT'],
  ['redis+cluster://[::1]:PORT,[::1]:PORT'],
  ['redis+sentinel://user:pass@[::1]:PORT/mymaster'],
  ['postgres://user:pass@[::1]:PORT/presign?sslmode=disable'],
])('a store is reached at %s', async (template) => {
  const server = createServer((socket) => socket.destroy()).listen(0, '::1');
  await once(server, 'listening');
  const url = template.replaceAll('PORT', String((server.address() as AddressInfo).port));
  const connected = once(server, 'connection');
  if (url.startsWith('postgres')) {
    const { db, close } = connectDatabase(url);
    const asked = Promise.resolve(db.execute(sql`select 1`)).catch(() => {});
    await connected;
    await close();
    await asked;
  } else {
    const client = connectRedis(url, () => {});
    await connected;
    client.disconnect();
  }
  server.close();
});
