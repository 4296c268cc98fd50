import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';

const MB = 1024 * 1024;
const BLOCK = Buffer.alloc(64 * 1024, 'x');

/** A provider that does what the path says. It keeps nothing that it gets or sends. */
let server: Server;
let stack: Stack;
let url: string;
let sent = 0;
let received = 0;
let contentType: string | undefined;
const open = new Set<ServerResponse>();

beforeAll(async () => {
  server = createServer(async (incoming, response) => {
    sent = 0;
    contentType = incoming.headers['content-type'];
    if (incoming.url === '/v1/early') {
      response.writeHead(401, { 'content-type': 'application/json', 'content-length': 16 });
      response.end('{"early":"bird"}');
      return;
    }
    received = 0;
    incoming.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    await new Promise((resolve) => incoming.once('end', resolve).once('close', resolve));
    if (incoming.url === '/v1/hold') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 0\n\n');
      open.add(response);
    } else if (incoming.url?.startsWith('/v1/send/')) {
      await sendBytes(response, Number(incoming.url.split('/')[3]) * MB);
    } else response.end(String(received));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  stack = await startStack({ providers: { openai: { base_url: base } } });
  const path = ['/v1/count', '/v1/hold', '/v1/early', '/v1/send/*'];
  url = (await stack.issue({ provider: 'openai', path, client_api_key: 'sk-real' })).url.replace(
    '/v1/count',
    '',
  );
});
afterAll(async () => {
  await stack.close();
  server.closeAllConnections();
  server.close();
});

async function sendBytes(response: ServerResponse, bytes: number) {
  response.writeHead(200, { 'content-length': bytes });
  const closed = once(response, 'close');
  while (sent < bytes && !response.destroyed) {
    const block = BLOCK.subarray(0, Math.min(BLOCK.length, bytes - sent));
    sent += block.length;
    if (!response.write(block)) await Promise.race([once(response, 'drain'), closed]);
  }
  response.end();
}

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as (options?: { type: 'minor' }) => void;

/** Above this, a look collects old garbage, too. */
const LOOKS_CLOSELY = 20 * MB;

/**
 * The most bytes that buffers took above what they took before, while the work went on. Garbage is collected before each look,
 * because V8 itself waits until 64 MiB of buffers are new. A buffer that outlives two looks counts as old, and on a busy machine many do.
 */
async function peakWhile<T>(work: Promise<T>): Promise<{ result: T; grew: number }> {
  const before = process.memoryUsage().arrayBuffers;
  let peak = before;
  const watch = setInterval(() => {
    gc({ type: 'minor' });
    if (process.memoryUsage().arrayBuffers > before + LOOKS_CLOSELY) gc();
    peak = Math.max(peak, process.memoryUsage().arrayBuffers);
  }, 5);
  const result = await work.finally(() => clearInterval(watch));
  return { result, grew: peak - before };
}

async function* blocks(bytes: number) {
  for (let left = bytes; left > 0; left -= BLOCK.length) {
    yield BLOCK.subarray(0, Math.min(BLOCK.length, left));
    await sleep(0);
  }
}

async function countBody(path: string): Promise<number> {
  const answer = await request(url + path, { method: 'POST', body: '{}' });
  let bytes = 0;
  for await (const chunk of answer.body) bytes += (chunk as Buffer).length;
  return bytes;
}

test('an event reaches the holder before the provider has sent the next', async () => {
  const answer = await request(`${url}/v1/hold`, { method: 'POST', body: '{}' });
  const chunks = answer.body[Symbol.asyncIterator]();
  const [upstream] = open;
  for (let event = 0; event < 50; event++) {
    // The next is written only when this one has come.
    const { value } = (await chunks.next()) as { value: Buffer };
    expect(value.toString()).toBe(`data: ${event}\n\n`);
    upstream?.write(`data: ${event + 1}\n\n`);
  }
  upstream?.end();
  open.clear();
  await chunks.return?.();
});

test('the headers of a stream arrive before its first event', async () => {
  const bare = createServer((_incoming, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    open.add(response);
  });
  await new Promise<void>((resolve) => bare.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(bare.address() as AddressInfo).port}`;
  const other = await startStack({ providers: { openai: { base_url: base } } });
  const issued = await other.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' });
  const answer = await request(issued.url, { method: 'POST', body: '{}' });
  expect(answer.headers['content-type']).toBe('text/event-stream');
  for (const response of open) response.end('data: late\n\n');
  open.clear();
  expect(await answer.body.text()).toBe('data: late\n\n');
  await other.close();
  bare.close();
});

test('a holder who does not read pauses the provider, and finally gets all bytes', async () => {
  const total = 200 * MB;
  const socket = await openSocket(new URL(url).origin);
  socket.pause();
  socket.write(
    `POST ${new URL(url).pathname}/v1/send/200 HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
  );
  const { grew } = await peakWhile(untilStill(() => sent));
  // Sockets and buffers between the two hold this much; the rest is still with the provider.
  expect(sent).toBeLessThan(20 * MB);
  expect(grew).toBeLessThan(20 * MB);
  const got = await peakWhile(drain(socket));
  expect(got.result).toBeGreaterThan(total);
  expect(got.grew).toBeLessThan(60 * MB);
});

/** Waits until a figure has stopped rising. */
async function untilStill(figure: () => number): Promise<void> {
  for (let last = -1, still = 0; still < 10; await sleep(50)) {
    still = figure() > 0 && figure() === last ? still + 1 : 0;
    last = figure();
  }
}

function drain(socket: Socket): Promise<number> {
  return new Promise((resolve) => {
    let bytes = 0;
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    socket.on('close', () => resolve(bytes));
    socket.resume();
  });
}

test('an answer of 100 MB passes without piling up in memory', async () => {
  const { result, grew } = await peakWhile(countBody('/v1/send/100'));
  expect(result).toBe(100 * MB);
  expect(grew).toBeLessThan(60 * MB);
});

test.each([
  ['with a length', { 'content-length': String(100 * MB) }],
  ['in chunks', {}],
])('a request body of 100 MB %s passes without piling up in memory', async (_what, framing) => {
  const headers = { ...framing, 'content-type': 'application/octet-stream' };
  const sending = request(`${url}/v1/count`, {
    method: 'POST',
    headers,
    body: Readable.from(blocks(100 * MB)),
  });
  const { result, grew } = await peakWhile(sending.then((answer) => answer.body.text()));
  expect(result).toBe(String(100 * MB));
  expect(contentType).toBe('application/octet-stream');
  expect(grew).toBeLessThan(60 * MB);
});

test.each([
  ['with a length', `Content-Length: ${20 * MB}`],
  ['in chunks', 'Transfer-Encoding: chunked'],
])(
  'an early answer of the provider arrives, although the body %s is still being sent',
  async (_what, framing) => {
    const socket = await openSocket(new URL(url).origin);
    socket.on('error', () => {});
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.write(`POST ${new URL(url).pathname}/v1/early HTTP/1.1\r\nHost: g\r\n${framing}\r\n\r\n10000\r\n`);
    socket.write(BLOCK);
    await eventually(async () => (text.includes('{"early":"bird"}') ? true : undefined));
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  },
);

test('a holder who reads only after sending everything gets an early answer', async () => {
  const socket = await openSocket(new URL(url).origin);
  let text = '';
  socket.write(
    `POST ${new URL(url).pathname}/v1/early HTTP/1.1\r\nHost: g\r\nContent-Length: ${20 * MB}\r\n\r\n`,
  );
  for (let left = 20 * MB; left > 0; left -= BLOCK.length) {
    if (!socket.write(BLOCK)) await once(socket, 'drain');
  }
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  // The connection is good for the next call.
  socket.write(`POST ${new URL(url).pathname}/v1/count HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}`);
  await eventually(async () => (text.match(/HTTP\/1\.1 /g)?.length === 2 ? true : undefined));
  expect(text).toMatch(/^HTTP\/1\.1 401 [\s\S]*HTTP\/1\.1 200 /);
  socket.destroy();
});

const STREAMS = thorough ? 500 : 200;

test(`${STREAMS} simultaneous streams all run and all end`, async () => {
  const dispatcher = new Agent({ connections: 600 });
  const streams = await Promise.all(
    Array.from({ length: STREAMS }, () =>
      request(`${url}/v1/hold`, { method: 'POST', body: '{}', dispatcher }),
    ),
  );
  expect(open.size).toBe(STREAMS);
  for (const response of open) response.write('data: 1\n\n');
  for (const response of open) response.end('data: [DONE]\n\n');
  open.clear();
  const texts = await Promise.all(streams.map((answer) => answer.body.text()));
  expect(new Set(texts)).toEqual(new Set(['data: 0\n\ndata: 1\n\ndata: [DONE]\n\n']));
  await dispatcher.destroy();
});
