import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';

let server: Server;
let reached = 0;
let stack: Stack;
const HOSTS = [
  '127.0.0.1',
  'localhost',
  '[::1]',
  '0.0.0.0',
  '2130706433',
  '0x7f.1',
  '127.1',
  '0177.0.0.1',
  '[::ffff:127.0.0.1]',
  '[::]',
  'localhost.',
];
const idOf = (host: string) => `p${HOSTS.indexOf(host)}`;

beforeAll(async () => {
  server = createServer((_request, response) => {
    reached++;
    response.end('{"inside":true}');
  });
  await new Promise<void>((resolve) => server.listen(0, '::', resolve));
  const { port } = server.address() as AddressInfo;
  const providers = Object.fromEntries(
    HOSTS.map((host) => [idOf(host), { extends: 'openai', base_url: `http://${host}:${port}` }]),
  );
  const allowed = new Set([`localhost:${port}`]);
  const one = { extends: 'openai', base_url: `http://127.0.0.1:${port}` };
  stack = await startStack({
    providers: { ...providers, one },
    gateway: { allowPrivateUpstreams: false },
  });
  partly = await startStack({
    providers: { ...providers, one },
    gateway: { allowPrivateUpstreams: allowed },
  });
});
let partly: Stack;
afterAll(async () => {
  await stack.close();
  await partly.close();
  server.close();
});

async function call(of: Stack, provider: string) {
  const ask = { provider, path: '/v1/x', client_api_key: 'sk-real', max_uses: 1 };
  const { url } = await of.issue(ask);
  const one = async () => {
    const answer = await request(url, { method: 'POST', body: '{}' });
    const body = (await answer.body.json()) as { error?: { code: string } };
    return body.error?.code ?? answer.statusCode;
  };
  return [await one(), await one()];
}

test.each(HOSTS)('a provider at http://%s gets no request, and the use is refunded', async (host) => {
  const before = reached;
  expect(await call(stack, idOf(host))).toEqual(['upstream_unreachable', 'upstream_unreachable']);
  expect(reached).toBe(before);
});

test('an allowed host and port allow exactly that host and port', async () => {
  expect(await call(partly, idOf('localhost'))).toEqual([200, 'uses_exhausted']);
  const before = reached;
  for (const host of HOSTS.filter((each) => each !== 'localhost')) {
    expect(await call(partly, idOf(host))).toEqual(['upstream_unreachable', 'upstream_unreachable']);
  }
  expect(await call(partly, 'one')).toEqual(['upstream_unreachable', 'upstream_unreachable']);
  expect(reached).toBe(before);
});

test('only the operator sees why an address was blocked, and which variable allows it', async () => {
  const { url } = await stack.issue({ provider: 'one', path: '/v1/x', client_api_key: 'sk-real' });
  const answer = await request(url, { method: 'POST', body: '{}' });
  const told = await answer.body.text();
  expect(JSON.parse(told)).toMatchObject({ error: { message: expect.stringContaining('not public') } });
  expect(told).not.toContain('ALLOW_PRIVATE_UPSTREAMS');
  const lines = stack.logs.map((line) => JSON.parse(line) as { request_id?: string });
  expect(lines.find((line) => line.request_id === answer.headers['x-presign-request-id'])).toMatchObject({
    level: 40,
    error: 'BLOCKED_ADDRESS',
    hint: expect.stringContaining('ALLOW_PRIVATE_UPSTREAMS=true'),
  });
});
