import { createServer } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { generateEncryptionKey } from '@presign/crypto';
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '@presign/gateway/test/authorization-server.ts';
import { keys } from '@presign/limits';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { socketsRead } from '../harness/thorough.ts';
import { ask, at, grantIn, ledgerOf, outcomes, post, send, sumOf, toolCall, urlOf } from './holder.ts';
import { listen, openSession } from './listen.ts';
import { listId, type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let authorization: AuthorizationServer;
let stack: Stack;
let aheadMs = 0;
/** The bytes that a gateway may hold of bodies and events that are not whole. */
const HELD_BYTES = 2 * 1024 * 1024;

beforeAll(async () => {
  stack = await startStack({
    providers: {},
    gateways: 2,
    gateway: { now: () => Date.now() + aheadMs, maxHeldBodyBytes: HELD_BYTES },
  });
});
afterAll(() => stack.close());
beforeEach(async () => {
  aheadMs = 0;
  upstream = await startMcpUpstream();
  authorization = await startAuthorizationServer();
  return async () => {
    authorization.close();
    await upstream.close();
  };
});

const issue = (policy: object = {}, server: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http', ...server }], ...policy });
const oauth = () => ({
  auth_type: 'oauth',
  auth_config: { token_url: authorization.url, client_id: 'c1', client_secret: 's1' },
});

/** A server that answers each connection with these bytes, and closes it. */
async function startBlunt(answer: () => string) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(answer()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return { url: `http://127.0.0.1:${port}/mcp`, close: () => void server.close() };
}
const STREAM = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n';

test('a server that names an endpoint elsewhere and keeps sending does not crash the gateway', async () => {
  const url = urlOf(await issue({}, { url: upstream.sseUrl }), 'a');
  expect((await post(url, ask('ping'))).status).toBe(200);
  const gateway = await startGatewayProcess(stack);
  upstream.behaves = ({ method }, response) => {
    if (method !== 'GET') return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('event: endpoint\ndata: http://elsewhere.example/\n\n');
    return response.write(`data: ${'x'.repeat(1_000)}\n\n`.repeat(2_000)) || true;
  };
  for (let i = 0; i < 3; i++) expect(await (await listen(at(stack, gateway.url, url))).over).toBe('ended');
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  await gateway.kill();
});

test('a server that closes right after its endpoint has its stream passed completely', async () => {
  const events = 'event: endpoint\ndata: /messages\n\nevent: message\ndata: {"last":"words"}\n\n';
  const blunt = await startBlunt(() => STREAM + events);
  const stream = await listen(urlOf(await issue({}, { url: blunt.url }), 'a'));
  expect(await stream.over).toBe('ended');
  expect(stream.messages()).toEqual([{ last: 'words' }]);
  blunt.close();
});

test('a holder who disconnects while a token is fetched leaves no stream open', async () => {
  const url = urlOf(await issue({}, { ...oauth(), url: upstream.sseUrl }), 'a');
  const release = authorization.hold();
  const leaving = new AbortController();
  const asked = request(url, { signal: leaving.signal }).catch(() => 'left');
  await authorization.reached(1);
  leaving.abort();
  expect(await asked).toBe('left');
  await socketsRead();
  release();
  await eventually(async () =>
    stack.logs.some((line) => line.includes('"kind":"mcp"') && line.includes('"GET"')) ? true : undefined,
  );
  expect(upstream.streams.size).toBe(0);
});

test('a stream whose URL expires while a token is fetched is not opened', async () => {
  const answer = await issue({ expires_in: 60 }, { ...oauth(), url: upstream.sseUrl });
  const release = authorization.hold();
  const asked = send(urlOf(answer, 'a'), 'GET');
  await authorization.reached(1);
  aheadMs = answer.expires_at * 1000 - Date.now() + 1;
  release();
  const heard = await asked;
  expect([heard.status, ...outcomes(heard)]).toEqual([405, 'token_expired']);
});

test('a credential that cannot be unsealed costs nothing', async () => {
  const answer = await issue({ max_uses: 1 });
  await post(urlOf(answer, 'a'), ask('ping'));
  const gateway = await startGatewayProcess(stack, { ENCRYPTION_KEYS: generateEncryptionKey('other') });
  expect((await post(at(stack, gateway.url, urlOf(answer, 'a')), toolCall('run'))).status).toBe(500);
  await gateway.kill();
  expect(await sumOf(stack, answer)).toEqual({ rows: 2, uses: 0, cost: 0 });
});

const BEARER = { auth_type: 'bearer', auth_config: { token: 'secret-0' } };

test.each([
  ['in the query', { key: 'secret/key', query: 'key' }, /secret/],
  ['in a header', { key: 'secret-key' }, /secret/],
  ['in a second header', { key: 'first-key', headers: { 'X-Second': 'secret-key' } }, /secret/],
])('an error that quotes the key %s passes with the key masked', async (_what, config, secret) => {
  const url = urlOf(await issue({}, { auth_type: 'api_key', auth_config: config }), 'a');
  upstream.behaves = ({ method, url: asked, headers }, response) =>
    response
      .writeHead(404, { 'content-type': 'application/json', link: `<http://server${asked}>` })
      // As Fastify does.
      .end(
        JSON.stringify({
          message: `Route ${method}:${asked} not found`,
          key: headers['x-api-key'],
          second: headers['x-second'],
        }),
      );
  for (const heard of [await send(url, 'DELETE'), await send(url, 'GET'), await post(url, ask('ping'))]) {
    expect(heard.status).toBe(404);
    expect(heard.text + JSON.stringify(heard.headers)).not.toMatch(secret);
    expect(heard.messages).toHaveLength(1);
  }
});

const LONG = 'x'.repeat(1_200_000);
const CODED: readonly [string, (text: string) => Buffer][] = [
  ['gzip', (text) => gzipSync(text)],
  ['x-gzip', (text) => gzipSync(text)],
  ['br', (text) => brotliCompressSync(text)],
  ['deflate', (text) => deflateSync(text)],
  ['UTF-8', Buffer.from],
  ['none', Buffer.from],
];
test.each(
  CODED.flatMap(([coding, code]) =>
    [{}, { tools: ['run'] }, BEARER].map((server) => [coding, code, server] as const),
  ),
)('a result in the coding %s, which was not requested, arrives (%#)', async (coding, code, server) => {
  const url = urlOf(await issue({}, server), 'a');
  for (const text of ['short', LONG]) {
    const result = { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text }] } };
    upstream.behaves = (_arrived, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': coding })
        .end(code(JSON.stringify(result)));
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(toolCall('run', 1)),
    });
    expect(await answer.json()).toEqual(result);
  }
});

const LIST = (id: unknown) => {
  const tools = ['run', 'other'].map((name) => ({ name, description: 'has secret-0' }));
  return JSON.stringify({ jsonrpc: '2.0', id, result: { tools } });
};
const asEvent = (text: string) => `id: 1\ndata: ${text}\n\n`;
const limited = async (url = upstream.url) =>
  urlOf(
    await issue({}, { ...BEARER, tools: ['run'], url, transport: url === upstream.url ? 'http' : 'sse' }),
    'a',
  );
const says = (coding: string, type: string, text: () => string) => {
  upstream.behaves = (_arrived, response) =>
    response.writeHead(200, { 'content-type': type, 'content-encoding': coding }).end(text());
};
const asked = () => LIST(JSON.parse(listId(upstream)));
/** The answer to a list of tools on each way, from a server that states this coding. */
const LISTED: Record<string, (coding: string) => Promise<string>> = {
  'in JSON': async (coding) => {
    says(coding, 'application/json', asked);
    return (await post(await limited(), ask('tools/list', 1))).text;
  },
  'on the stream of a POST': async (coding) => {
    says(coding, 'text/event-stream', () => asEvent(asked()));
    return (await post(await limited(), ask('tools/list', 1))).text;
  },
  'on the stream of a GET': async (coding) => {
    says(coding, 'text/event-stream', () => asEvent(LIST(1)));
    return (await send(await limited(), 'GET', { accept: 'text/event-stream' })).text;
  },
  'on a stream of the older transport': async (coding) => {
    upstream.behaves = ({ method }, response) => {
      response.setHeader('content-encoding', coding);
      if (method !== 'POST') return false;
      for (const each of upstream.streams) each.write(asEvent(asked()));
      return response.writeHead(202).end();
    };
    const { stream, endpoint } = await openSession(stack, await limited(upstream.sseUrl));
    await post(endpoint, ask('tools/list', 1));
    await eventually(async () => stream.text().includes('"tools"'));
    stream.leave();
    return stream.text();
  },
};
describe.each(['UTF-8', 'none'])('a server whose answer has the coding %s', (coding) => {
  test.each(Object.keys(LISTED))('has its answer decoded and filtered %s', async (way) => {
    const text = (await LISTED[way]?.(coding)) ?? '';
    expect(text).toMatch(/"id":1,"result":\{"tools":\[\{"name":"run","description":"has \*+"\}\]\}/);
    expect(text).not.toContain('secret-0');
    expect(text).not.toMatch(/^id: 1$/m);
  });
});

test('a result that cannot be decoded becomes an error with its id', async () => {
  const url = urlOf(await issue({}, BEARER), 'a');
  upstream.behaves = (_arrived, response) =>
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      .end('no gzip, but secret-0');
  const heard = await post(url, toolCall('run', 'x'));
  expect(heard.messages).toMatchObject([{ id: 'x', error: { data: { code: 'upstream_unreachable' } } }]);
  expect(heard.text).not.toContain('secret-0');
});

test.each(['param\u017f', 'PARAM\u017f'])(
  '%s next to params is refused, because Go parses it as params',
  async (key) => {
    const url = urlOf(await issue({}, { tools: ['run'] }), 'a');
    const call = JSON.stringify({ ...toolCall('run'), [key]: { name: 'other' } });
    expect((await post(url, call)).status).toBe(400);
    expect(upstream.arrived).toEqual([]);
  },
);

test('headers that command a proxy in front of the gateway do not pass', async () => {
  const url = urlOf(await issue(), 'a');
  const commands = { 'x-accel-redirect': '/internal', 'x-sendfile': '/etc/passwd', refresh: '0; url=/' };
  upstream.behaves = (_arrived, response) => response.writeHead(200, commands).end('{}');
  const { headers } = await send(url, 'GET');
  for (const name of Object.keys(commands)) expect(headers[name]).toBeUndefined();
});

test('after an event that is too long to wait for, a refusal is not sent on the stream', async () => {
  const answer = await issue({ max_uses: 1 }, { url: upstream.sseUrl });
  const { stream, endpoint } = await openSession(stack, urlOf(answer, 'a'));
  for (const each of upstream.streams) each.write(`data: "${'x'.repeat(17 * 1024 * 1024)}"\n\n`);
  await eventually(async () => (stream.text().length > 17 * 1024 * 1024 ? true : undefined));
  await post(endpoint, toolCall('run'));
  const status = await eventually(async () => (await post(endpoint, toolCall('run'))).status);
  expect(status).toBe(404);
  stream.leave();
});

test('prices with an overflowing sum stop neither the ledger nor other calls', async () => {
  const dear = 2 ** 52;
  const pricing = { default: 1, tools: { dear, most: dear - 1 } };
  const answer = await issue({}, { pricing });
  const batch = (count: number) => Array.from({ length: count }, (_, i) => toolCall('dear', i));
  for (let i = 0; i < 20; i++) await post(urlOf(answer, 'a'), batch(100));
  await Promise.all([post(urlOf(answer, 'a'), batch(47)), post(urlOf(answer, 'a'), toolCall('most'))]);
  await ledgerOf(stack, answer);
  expect((await sumOf(stack, answer)).cost).toBeLessThanOrEqual(Number.MAX_SAFE_INTEGER);
  expect(await stack.redis.xlen(keys.usage(grantIn(answer.bundle_token).partition))).toBe(0);
});

test('endless events stay within the shared memory, and then pass unread', async () => {
  const url = urlOf(await issue(), 'a');
  const bytes = HELD_BYTES / 2;
  upstream.behaves = ({ method }, response) => {
    if (method !== 'GET') return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    return response.write(`data: ${'x'.repeat(bytes)}`) || true;
  };
  for (const _round of ['first', 'after the first have gone']) {
    const streams = [await listen(url), await listen(url), await listen(url)];
    const passed = () => streams.filter((each) => each.text().length > 0).length;
    // Seven eighths are for large ones: one event of the three fits.
    await eventually(async () => (passed() === 2 ? true : undefined));
    await socketsRead();
    expect(passed()).toBe(2);
    for (const each of streams) each.leave();
    await eventually(async () => (upstream.streams.size === 0 ? true : undefined));
    await socketsRead();
  }
});

test('a server that refuses every token causes two requests to the authorization server, not one for every call', async () => {
  const url = urlOf(await issue({}, oauth()), 'a');
  upstream.behaves = (_arrived, response) => response.writeHead(401).end();
  const heard = await Promise.all(Array.from({ length: 50 }, () => post(url, ask('ping'))));
  for (let i = 0; i < 10; i++) heard.push(await post(url, ask('ping')));
  for (const each of heard) expect(outcomes(each)).toEqual(['upstream_auth_failed']);
  expect(authorization.requests).toHaveLength(2);
});
