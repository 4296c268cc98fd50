import { keys, revokeGrant } from '@presign/limits';
import type { McpPresignAnswer } from '@presign/schema';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import {
  ask,
  at,
  grantIn,
  ledgerOf,
  outcomes,
  post,
  type RpcAnswer,
  send,
  sumOf,
  tokenIn,
  toolCall,
  urlOf,
} from './holder.ts';
import { type Listener, listen, openSession } from './listen.ts';
import { redisKeys } from './redis-keys.ts';
import { eventOf, type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
const open: Listener[] = [];
/** How far the gateways' clock is ahead. */
let aheadMs = 0;
/** A URL that is about to expire: a busy machine needs some of it before. */
const EXPIRES_MS = 5_000;

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2, gateway: { now: () => Date.now() + aheadMs } });
});
afterAll(async () => {
  await stack.close();
});
beforeEach(async () => {
  aheadMs = 0;
  upstream = await startMcpUpstream();
  return async () => {
    for (const each of open.splice(0)) each.leave();
    await upstream.close();
  };
});

const issue = (policy: object = {}, server: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.sseUrl, ...server }], ...policy });

async function connect(answer: McpPresignAnswer) {
  const session = await openSession(stack, urlOf(answer, 'a'));
  open.push(session.stream);
  return session;
}

test('the stream is the same MCP server through any gateway, and the endpoint is sealed', async () => {
  const { stream, endpoint } = await connect(await issue());
  expect(stream.headers).toMatchObject({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
  expect(new URL(endpoint).pathname).toBe('/mcp/mcp');
  expect(decodeURIComponent(endpoint)).not.toContain('messages');
  const heard = await post(endpoint, ask('initialize'));
  expect([heard.status, heard.text]).toEqual([202, 'Accepted']);
  expect(upstream.arrived.at(-1)).toMatchObject({ method: 'POST', url: '/messages?session=1' });
  expect(await stream.reached(1)).toMatchObject([{ id: 1, result: {} }]);
});

test('a limit that one gateway finds is sent to the stream at another, and the POST gets 202', async () => {
  const answer = await issue({ max_uses: 3 });
  const { stream, endpoint } = await connect(answer);
  const heard = await Promise.all(
    Array.from({ length: 50 }, (_, i) => post(at(stack, i % 2, endpoint), toolCall('run', `call ${i}`))),
  );
  expect(new Set(heard.map(({ status }) => status))).toEqual(new Set([202]));
  const messages = (await stream.reached(50)) as RpcAnswer[];
  expect(messages).toHaveLength(50);
  expect(new Set(messages.map(({ id }) => id)).size).toBe(50);
  const errors = messages.flatMap(({ error }) => error ?? []);
  expect(errors).toHaveLength(47);
  for (const { data } of errors) expect(data).toMatchObject({ code: 'uses_exhausted', limit: 3, used: 3 });
  expect(upstream.ran).toHaveLength(3);
  expect(await sumOf(stack, answer)).toEqual({ rows: 3, uses: 3, cost: 3_000 });
  // Free requests still pass.
  expect((await post(endpoint, ask('ping', 'p'))).status).toBe(202);
  expect((await stream.reached(51)).at(-1)).toMatchObject({ id: 'p', result: {} });
});

test('the refusal of a tool, and of each request of a batch, is sent on the stream', async () => {
  const { stream, endpoint } = await connect(await issue({ max_uses: 1 }, { tools: ['run'] }));
  expect((await post(endpoint, toolCall('delete', 'x'))).status).toBe(202);
  expect(await stream.reached(1)).toMatchObject([{ id: 'x', error: { data: { code: 'tool_not_allowed' } } }]);
  expect((await post(endpoint, [toolCall('run', 1), toolCall('run', 2)])).status).toBe(202);
  expect((await stream.reached(2))[1]).toMatchObject([
    { id: 1, error: {} },
    { id: 2, error: {} },
  ]);
  expect(upstream.ran).toEqual([]);
});

test('a limit gets 404 if no stream listens, so that its client does not wait', async () => {
  const { stream, endpoint } = await connect(await issue({ max_uses: 1 }));
  await post(endpoint, toolCall('run'));
  stream.leave();
  for (const gateway of [0, 1]) {
    const url = at(stack, gateway, endpoint);
    const heard = await eventually(async () => {
      const each = await post(url, toolCall('run'));
      return each.status === 202 ? undefined : each;
    });
    expect(heard.status).toBe(404);
    expect(heard.headers['content-type']).toBe('application/json');
  }
  expect(upstream.ran).toHaveLength(1);
});

test("a message for a stream at a dead gateway gets 404 once the stream's presence has expired", async () => {
  const answer = await issue({ max_uses: 1 });
  const { stream, endpoint } = await connect(answer);
  await post(endpoint, toolCall('run'));
  // As after a gateway's death: the stream's presence is not renewed.
  const present = await redisKeys(stack.redis, keys.listening(0, '*').replace('{p00}', '{p??}'));
  expect(present.length).toBeGreaterThan(0);
  for (const key of present) {
    expect(await stack.redis.pttl(key)).toBeGreaterThan(0);
    await stack.redis.del(key);
  }
  expect((await post(endpoint, toolCall('run'))).status).toBe(404);
  expect(stream.messages()).toHaveLength(1);
});

test('the stream gets an error for a server that broke off or refuses connections, and only a refused connection is refunded', async () => {
  const answer = await issue({ max_uses: 2 });
  const { stream, endpoint } = await connect(answer);
  upstream.behaves = (_arrived, _response, request) => request.socket.destroy();
  expect((await post(endpoint, toolCall('run', 'cut'))).status).toBe(202);
  const unreachable = { data: { code: 'upstream_unreachable' } };
  expect(await stream.reached(1)).toMatchObject([{ id: 'cut', error: unreachable }]);
  upstream.stopListening();
  expect((await post(endpoint, toolCall('run', 'away'))).status).toBe(202);
  expect((await stream.reached(2))[1]).toMatchObject({ id: 'away', error: unreachable });
  expect(await sumOf(stack, answer)).toEqual({ rows: 3, uses: 1, cost: 1_000 });
});

test.each(['end', 'destroy'] as const)(
  'open calls get errors if a server with event ids stops its stream (%s), because the stream cannot be resumed',
  async (how) => {
    const { stream, endpoint } = await connect(await issue());
    upstream.behaves = ({ method }, response) => method === 'POST' && response.writeHead(202).end();
    const notice = { jsonrpc: '2.0', method: 'notifications/message', params: {} };
    for (const each of upstream.streams) each.write(`id: 5\n${eventOf(notice)}`);
    await stream.reached(1);
    await post(endpoint, toolCall('run', 'open'));
    for (const each of upstream.streams) each[how]();
    expect(await stream.over).toBe('ended');
    const error = { data: { code: 'upstream_unreachable' } };
    expect(stream.messages()).toMatchObject([notice, { id: 'open', error }]);
  },
);

test('a server that does not know the session answers with its own status, and the use is refunded', async () => {
  const answer = await issue({ max_uses: 1 });
  const { endpoint } = await connect(answer);
  upstream.behaves = ({ method }, response) =>
    method === 'POST' && response.writeHead(404).end('Session not found');
  for (let i = 0; i < 3; i++) {
    const heard = await post(endpoint, toolCall('run'));
    expect([heard.status, heard.text]).toEqual([404, 'Session not found']);
  }
  expect(await sumOf(stack, answer)).toEqual({ rows: 6, uses: 0, cost: 0 });
});

test('an error on the stream refunds nothing, because it is not the answer to the POST itself', async () => {
  const answer = await issue({ max_uses: 1 });
  const { stream, endpoint } = await connect(answer);
  await post(endpoint, toolCall('error-32602'));
  expect(await stream.reached(1)).toMatchObject([{ error: { code: -32602 } }]);
  expect(await sumOf(stack, answer)).toEqual({ rows: 1, uses: 1, cost: 1_000 });
});

test('a revocation answers every open call on the stream, whichever gateway received the call, and then ends the stream', async () => {
  const answer = await issue();
  const { stream, endpoint } = await connect(answer);
  // The server accepts what follows, and answers one of it alone.
  upstream.behaves = ({ method, body }, response) => {
    if (method !== 'POST') return false;
    if (body.includes('answered')) return false;
    return response.writeHead(202).end('Accepted');
  };
  for (const id of ['one', 'answered', 'two']) await post(at(stack, 0, endpoint), toolCall('run', id));
  await post(at(stack, 1, endpoint), toolCall('run', 'three'));
  await stream.reached(1);
  await revokeGrant(stack.redis, grantIn(tokenIn(urlOf(answer, 'a'))));
  expect(await stream.over).toBe('ended');
  const error = { error: { data: { code: 'grant_revoked' } } };
  expect(stream.messages()).toMatchObject([
    { id: 'answered', result: {} },
    { id: 'one', ...error },
    { id: 'two', ...error },
    { id: 'three', ...error },
  ]);
});

test('a call that was admitted before expires_at is answered on its stream, which then ends', async () => {
  const answer = await issue({ expires_in: 60 });
  aheadMs = answer.expires_at * 1_000 - Date.now() - EXPIRES_MS;
  const { stream, endpoint } = await connect(answer);
  upstream.behaves = ({ method }, response) => method === 'POST' && response.writeHead(202).end('Accepted');
  expect((await post(endpoint, toolCall('run', 'late'))).status).toBe(202);
  // From now on the URL is refused on the stream, which is still there.
  const refused = await eventually(async () => {
    await post(endpoint, toolCall('run', 'too late'));
    return stream.messages().length > 0 ? stream.messages() : undefined;
  });
  expect(refused[0]).toMatchObject({ id: 'too late', error: { data: { code: 'token_expired' } } });
  for (const each of upstream.streams) each.write(eventOf({ jsonrpc: '2.0', id: 'late', result: {} }));
  expect(await stream.over).toBe('ended');
  // A busy machine may refuse several before the first refusal is heard.
  const others = stream.messages().filter((each) => (each as { id?: unknown }).id !== 'too late');
  expect(others).toEqual([{ jsonrpc: '2.0', id: 'late', result: {} }]);
  expect((await post(endpoint, toolCall('run', 'after'))).status).toBe(404);
});

test.each([400, 404, 410, 429, 500])(
  'a POST that the server refuses with %i is answered on the stream, once',
  async (status) => {
    const answer = await issue();
    const { stream, endpoint } = await connect(answer);
    upstream.behaves = ({ method }, response) =>
      method === 'POST' && response.writeHead(status).end('no session');
    expect((await post(endpoint, toolCall('run', 'no'))).status).toBe(status);
    const error = {
      data: { code: 'upstream_unreachable' },
      message: expect.stringContaining(`status ${status}`),
    };
    expect(await stream.reached(1)).toMatchObject([{ id: 'no', error }]);
    await revokeGrant(stack.redis, grantIn(tokenIn(urlOf(answer, 'a'))));
    expect(await stream.over).toBe('ended');
    expect(stream.messages()).toHaveLength(1);
  },
);

test('a stream costs nothing, and its refusal is JSON-RPC', async () => {
  const answer = await issue({ max_uses: 1, cost_limit: 0 });
  await connect(answer);
  await connect(answer);
  expect(await ledgerOf(stack, answer)).toEqual([]);
  await upstream.close();
  upstream = await startMcpUpstream();
  const heard = await send(urlOf(answer, 'a'), 'GET', { accept: 'text/event-stream' });
  expect([heard.status, ...outcomes(heard)]).toEqual([502, 'upstream_unreachable']);
});

test('a stream that ends right after its endpoint passes completely', async () => {
  upstream.behaves = ({ method }, response) =>
    method === 'GET' &&
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end('event: endpoint\ndata: /messages?session=1\n\nevent: message\ndata: {"last":"words"}\n\n');
  const stream = await listen(urlOf(await issue(), 'a'));
  expect(await stream.over).toBe('ended');
  expect(stream.messages()).toEqual([{ last: 'words' }]);
  // Nothing of it is left behind in Redis.
  await eventually(async () =>
    (await redisKeys(stack.redis, '*listening:*')).length === 0 ? true : undefined,
  );
});
