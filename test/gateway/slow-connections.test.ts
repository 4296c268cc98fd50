import type { Socket } from 'node:net';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
let url: string;
const sockets: Socket[] = [];

beforeAll(async () => {
  providers = await startProviders();
  stack = await startStack({ providers: providers.file });
  url = (await stack.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' })).url;
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await stack.close();
  await providers.close();
});

const stallers: [string, () => string][] = [
  ['say nothing', () => ''],
  ['send half a request line', () => `POST ${new URL(url).pathname.slice(0, 40)}`],
  ['send headers without end', () => `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: g\r\nX-A: 1\r\n`],
  [
    'stall in a body',
    () => `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: g\r\nContent-Length: 9000\r\n\r\n{`,
  ],
];

test.each(stallers)('500 holders who %s do not block other calls', async (_what, sent) => {
  const opened = await Promise.all(Array.from({ length: 500 }, () => openSocket(new URL(url).origin)));
  for (const socket of opened) {
    socket.on('error', () => {});
    socket.write(sent());
    sockets.push(socket);
  }
  const before = providers.seen.length;
  const answers = await Promise.all(
    Array.from({ length: 50 }, () =>
      request(url, { method: 'POST', body: '{}' }).then((answer) => answer.body.json()),
    ),
  );
  expect(answers).toEqual(Array.from({ length: 50 }, () => ({ ok: true })));
  // Holders who stall in a small body have reached no provider.
  expect(providers.seen.length - before).toBe(50);
});

test('all 2,000 connections were open at once, and calls still pass', async () => {
  expect(sockets.filter((socket) => !socket.destroyed)).toHaveLength(2_000);
  const answer = await request(url, { method: 'POST', body: '{}' });
  expect(answer.statusCode).toBe(200);
});
