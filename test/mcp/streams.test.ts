import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { revokeGrant } from '@presign/limits';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, at, grantIn, outcomes, post, send, sumOf, tokenIn, toolCall, urlOf } from './holder.ts';
import { type Listener, listen } from './listen.ts';
import { eventOf, type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
let aheadMs = 0;
/** A URL that is about to expire: a busy machine needs some of it before. */
const EXPIRES_MS = 5_000;
/** How long the idle streams are looked at; by default until the first sign of life. */
const IDLE_MINUTES = Number(process.env.MCP_IDLE_MINUTES ?? 0);
/** Streams that nothing comes on, opened first and looked at last. */
let idle: { server: McpUpstream; http: Listener; sse: Listener };

beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({ providers: {}, gateways: 2, gateway: { now: () => Date.now() + aheadMs } });
  const server = await startMcpUpstream();
  const { servers } = await stack.issueMcp({
    servers: [
      { name: 'http', url: server.url, transport: 'http' },
      { name: 'sse', url: server.sseUrl },
    ],
  });
  idle = {
    server,
    http: await listen(servers.http?.url ?? ''),
    sse: await listen(at(stack, 1, servers.sse?.url ?? '')),
  };
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
  await idle.server.close();
});
beforeEach(() => {
  aheadMs = 0;
  upstream.behaves = undefined;
});

const issue = (policy: object = {}, url = upstream.url) =>
  stack.issueMcp({ servers: [{ name: 'a', url, transport: 'http' }], ...policy });

/** The answer to the next request, in the test's own hand. */
const taken = () =>
  new Promise<ServerResponse>((resolve) => {
    upstream.behaves = (_arrived, response) => resolve(response);
  });
const begun = (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  return response;
};
/** A POST whose answer is a stream that has begun. */
async function stream(url: string, message: object = toolCall('run')) {
  const answering = taken();
  const asked = request(url, { method: 'POST', body: JSON.stringify(message) });
  const response = begun(await answering);
  return { response, heard: await asked };
}
const gone = (response: ServerResponse) => eventually(async () => (response.destroyed ? true : undefined));

test('events pass one by one as they arrive, byte for byte', async () => {
  const listener = await listen(urlOf(await issue(), 'a'));
  const [response] = [...upstream.streams];
  const events = [
    'event: message\ndata: {"n":1}\n\n',
    ': a comment\n\n',
    'retry: 10\ndata: x\ndata: y\r\n\r\n',
  ];
  for (const [i, event] of events.entries()) {
    response?.write(event.slice(0, 9));
    response?.write(event.slice(9));
    // A reader does not need the last LF of a CRLF, so it may come with the next event.
    const sofar = events
      .slice(0, i + 1)
      .join('')
      .trimEnd();
    await eventually(async () => (listener.text().trimEnd() === sofar ? true : undefined));
  }
  response?.end();
  expect(await listener.over).toBe('ended');
  expect(listener.text()).toBe(events.join(''));
});

test('a comment passes before the event or the answer after it', async () => {
  const servers = [{ name: 'a', url: upstream.url, transport: 'http', tools: ['run'] }];
  const url = urlOf(await stack.issueMcp({ servers }), 'a');
  const listener = await listen(url);
  const [response] = [...upstream.streams].slice(-1);
  for (const ping of [': one\n', ': two\n']) {
    response?.write(ping);
    await eventually(async () => listener.text().endsWith(ping));
  }
  listener.leave();
  const { response: answer, heard } = await stream(url);
  answer.write(': still at it\n');
  const reader = heard.body[Symbol.asyncIterator]();
  expect(String((await reader.next()).value)).toBe(': still at it\n');
  answer.end(`\n${eventOf({ jsonrpc: '2.0', id: 1, result: {} })}`);
  const rest: Buffer[] = [];
  for (let next = await reader.next(); !next.done; next = await reader.next())
    rest.push(next.value as Buffer);
  expect(messagesIn(String(Buffer.concat(rest)))).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
});

const errorOf = (code: string, id: string | number = 1) => ({ id, error: { data: { code } } });
const messagesIn = (text: string) =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as unknown);

test('streams that wait for events end at expires_at, and a call that was admitted before finishes', async () => {
  const answer = await issue({ expires_in: 60 });
  aheadMs = 55_000;
  const listeners = await Promise.all([0, 1].map((i) => listen(at(stack, i, urlOf(answer, 'a')))));
  const posted = await stream(urlOf(answer, 'a'));
  const waiting = await stream(urlOf(answer, 'a'), ask('subscriptions/listen', 's'));
  const left = answer.expires_at * 1000 - (Date.now() + aheadMs);
  expect(left).toBeGreaterThan(0);
  expect(await Promise.all(listeners.map(({ over }) => over))).toEqual(['ended', 'ended']);
  expect(messagesIn(await waiting.heard.body.text())).toMatchObject([errorOf('token_expired', 's')]);
  expect(Date.now() + aheadMs).toBeGreaterThanOrEqual(answer.expires_at * 1000);
  await gone(waiting.response);
  posted.response.end(eventOf({ jsonrpc: '2.0', id: 1, result: {} }));
  expect(messagesIn(await posted.heard.body.text())).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('streams that wait for events end at a shortened end, and a call that was admitted before finishes', async () => {
  const answer = await issue();
  const listener = await listen(urlOf(answer, 'a'));
  const posted = await stream(urlOf(answer, 'a'));
  const waiting = await stream(urlOf(answer, 'a'), ask('subscriptions/listen', 's'));
  const end = Math.ceil(Date.now() / 1000) + 3;
  const changed = await fetch(`${stack.issuerUrl}/v1/grants/${answer.grant_id}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ expires_at: end }),
  });
  expect(changed.status, await changed.text()).toBe(200);
  expect(await listener.over).toBe('ended');
  expect(messagesIn(await waiting.heard.body.text())).toMatchObject([errorOf('token_expired', 's')]);
  expect(Date.now()).toBeGreaterThanOrEqual(end * 1000);
  posted.response.end(eventOf({ jsonrpc: '2.0', id: 1, result: {} }));
  expect(messagesIn(await posted.heard.body.text())).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('a revocation ends the open streams of its grant at every gateway, and other streams continue', async () => {
  const answer = await stack.issueMcp({
    servers: ['a', 'b'].map((name) => ({ name, url: upstream.url, transport: 'http' })),
  });
  const listeners = await Promise.all([0, 1].map((i) => listen(at(stack, i, urlOf(answer, 'a')))));
  upstream.behaves = undefined;
  const beside = await listen(urlOf(answer, 'b'));
  await revokeGrant(stack.redis, grantIn(tokenIn(urlOf(answer, 'a'))));
  expect(await Promise.all(listeners.map(({ over }) => over))).toEqual(['ended', 'ended']);
  for (const each of upstream.streams) each.write(eventOf({ still: 'here' }));
  expect(await beside.reached(1)).toEqual([{ still: 'here' }]);
  beside.leave();
});

test('a revocation answers every open request of a stream with an error, and no answered request', async () => {
  const url = urlOf(await issue(), 'a');
  const posted = await stream(url, [toolCall('run', 1), ask('ping', 'p'), toolCall('run', 2)]);
  posted.response.write(eventOf({ jsonrpc: '2.0', id: 'p', result: {} }));
  // The beginning of an event that never ends.
  posted.response.write('event: message\ndata: {"half');
  await revokeGrant(stack.redis, grantIn(tokenIn(url)));
  expect(messagesIn(await posted.heard.body.text())).toMatchObject([
    { id: 'p', result: {} },
    errorOf('grant_revoked', 1),
    errorOf('grant_revoked', 2),
  ]);
  await gone(posted.response);
});

test('if a server breaks off a stream, each of its open requests gets an answer', async () => {
  const url = urlOf(await issue(), 'a');
  const posted = await stream(url, [toolCall('run', 1), ask('ping', 'p'), toolCall('run', 2)]);
  posted.response.write(eventOf({ jsonrpc: '2.0', id: 'p', result: {} }));
  posted.response.write('event: message\ndata: {"half');
  const bytes = posted.heard.body[Symbol.asyncIterator]();
  const first = String((await bytes.next()).value);
  posted.response.destroy();
  let rest = '';
  for (let next = await bytes.next(); !next.done; next = await bytes.next()) rest += String(next.value);
  expect(messagesIn(first + rest)).toMatchObject([
    { id: 'p', result: {} },
    errorOf('upstream_unreachable', 1),
    errorOf('upstream_unreachable', 2),
  ]);
});

test.each([
  ['an event had an id', 'id: 7\ndata: \n\n'],
  ['every request is answered', eventOf({ jsonrpc: '2.0', id: 1, result: {} })],
])('a stream that its server breaks off breaks off for its client when %s', async (_what, event) => {
  const posted = await stream(urlOf(await issue(), 'a'));
  posted.response.write(event);
  const bytes = posted.heard.body[Symbol.asyncIterator]();
  const sealed = /^id: [\w.-]{40,}/;
  expect(String((await bytes.next()).value).replace(sealed, 'id: 7')).toBe(event);
  posted.response.destroy();
  await expect(bytes.next()).rejects.toThrow();
});

test('if a server breaks off a JSON answer, its request gets an error', async () => {
  const url = urlOf(await issue(), 'a');
  upstream.behaves = (_arrived, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('{"jsonrpc":', () => response.destroy());
  };
  const heard = await post(url, toolCall('run', 'x'));
  expect([heard.status, heard.messages]).toMatchObject([502, [errorOf('upstream_unreachable', 'x')]]);
});

test('a revocation answers a call whose JSON answer has begun with an error', async () => {
  const url = urlOf(await issue(), 'a');
  upstream.behaves = (_arrived, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).write('{"jsonrpc":');
  const asked = post(url, toolCall('run', 'x'));
  await eventually(async () => (upstream.arrived.at(-1)?.body.includes('"x"') ? true : undefined));
  await revokeGrant(stack.redis, grantIn(tokenIn(url)));
  expect([(await asked).status, (await asked).messages]).toMatchObject([
    200,
    [errorOf('grant_revoked', 'x')],
  ]);
});

test.each(['GET', 'POST'] as const)(
  'a %s without an answer yet gets one when its URL is revoked',
  async (method) => {
    const answer = await issue();
    const url = urlOf(answer, 'a');
    const waiting = taken();
    const asked =
      method === 'GET'
        ? send(url, 'GET', { 'mcp-protocol-version': '2025-06-18' })
        : post(url, toolCall('run'));
    await waiting;
    await revokeGrant(stack.redis, grantIn(tokenIn(url)));
    const heard = await asked;
    expect([heard.status, ...outcomes(heard)]).toEqual([method === 'GET' ? 405 : 200, 'grant_revoked']);
    // The call may have run, so its charge stands.
    expect((await sumOf(stack, answer)).uses).toBe(method === 'GET' ? 0 : 1);
  },
);

test('a GET without an answer yet gets one when its URL expires, and a POST gets its own answer', async () => {
  const answer = await issue({ expires_in: 60 });
  const url = urlOf(answer, 'a');
  aheadMs = answer.expires_at * 1_000 - Date.now() - EXPIRES_MS;
  const first = taken();
  const got = send(url, 'GET', { 'mcp-protocol-version': '2025-06-18' });
  await first;
  const second = taken();
  const posted = post(url, toolCall('run'));
  const response = await second;
  expect([(await got).status, ...outcomes(await got)]).toEqual([405, 'token_expired']);
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":1,"result":{}}');
  expect((await posted).messages).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('a client that disconnects ends its GET and its POST at the server', async () => {
  const answer = await issue();
  const listener = await listen(urlOf(answer, 'a'));
  const [response] = [...upstream.streams];
  listener.leave();
  if (response) await gone(response);
  expect(upstream.streams.size).toBe(0);
  const posted = await stream(urlOf(answer, 'a'));
  posted.heard.body.on('error', () => {}).destroy();
  await gone(posted.response);
  expect((await sumOf(stack, answer)).uses).toBe(1);
});

test('a client that disconnects before any answer ends its POST at the server, and is charged', async () => {
  const answer = await issue({ max_uses: 1 });
  const answering = taken();
  const leaving = new AbortController();
  const body = JSON.stringify(toolCall('run'));
  const asked = request(urlOf(answer, 'a'), { method: 'POST', body, signal: leaving.signal });
  const response = await answering;
  leaving.abort();
  await expect(asked).rejects.toThrow();
  await gone(response);
  expect((await sumOf(stack, answer)).uses).toBe(1);
});

test('a slow client slows the server down, and gets everything', async () => {
  const url = urlOf(await issue(), 'a');
  const event = eventOf({ text: 'x'.repeat(100_000) });
  const total = 1_000;
  let written = 0;
  upstream.behaves = (_arrived, response) => {
    begun(response);
    const more = () => {
      while (written < total && !response.destroyed) {
        written++;
        if (!response.write(event)) return void response.once('drain', more);
      }
      response.end();
    };
    more();
  };
  const { pathname, search, origin } = new URL(url);
  const socket = await openSocket(origin);
  const body = JSON.stringify(toolCall('run'));
  socket.pause();
  socket.write(
    `POST ${pathname}${search} HTTP/1.1\r\nHost: g\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await stands(() => written);
  // 100 MB in all: what is under way fits into the sockets' own buffers.
  expect(written).toBeLessThan(300);
  let got = 0;
  socket.on('data', (chunk) => {
    got += chunk.toString('latin1').split('event: message').length - 1;
    if (got >= total - 5) socket.end();
  });
  socket.resume();
  await eventually(async () => (written === total ? true : undefined));
  socket.destroy();
});

/** Waits until a figure has stopped rising. */
async function stands(figure: () => number): Promise<void> {
  for (let last = -1, still = 0; still < 10; await sleep(50)) {
    still = figure() > 0 && figure() === last ? still + 1 : 0;
    last = figure();
  }
}

test('a closing gateway ends GET streams at once, and lets a running call finish', async () => {
  const answer = await issue({ max_uses: 5 });
  await post(urlOf(answer, 'a'), ask('initialize'));
  const gateway = await startGatewayProcess(stack);
  const url = at(stack, gateway.url, urlOf(answer, 'a'));
  const listener = await listen(url);
  const posted = await stream(url);
  const waiting = taken();
  const unanswered = send(url, 'GET');
  await waiting;
  const stopped = gateway.stop();
  expect(await listener.over).toBe('ended');
  // The gateway waits 30 s for what is worked on: these did not have to.
  expect([(await unanswered).status, ...outcomes(await unanswered)]).toEqual([503, 'overloaded']);
  posted.response.end(eventOf({ jsonrpc: '2.0', id: 1, result: {} }));
  expect(await posted.heard.body.text()).toContain('"result":{}');
  expect(await stopped).toBe(0);
});

test(
  'an idle stream is kept alive by comments, and stays open',
  async () => {
    // One comes every 15 seconds.
    const least = Math.max(1, IDLE_MINUTES * 4);
    for (const listener of [idle.http, idle.sse]) {
      await eventually(
        async () => (listener.text().split(': keep-alive\n\n').length > least ? true : undefined),
        IDLE_MINUTES * 60_000 + 30_000,
      );
    }
    expect(idle.server.streams.size).toBe(2);
    for (const each of idle.server.streams) each.write(eventOf({ after: 'all' }));
    for (const listener of [idle.http, idle.sse])
      expect(await listener.reached(1)).toEqual([{ after: 'all' }]);
  },
  IDLE_MINUTES * 60_000 + 60_000,
);
