import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSocket, readAnswers } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

let upstream: Upstream;
let stack: Stack;
beforeAll(async () => {
  upstream = await startUpstream(
    (_seen, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
  );
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** Sends a call so many times at once over one connection. Resolves to the answers, once the gateway closes it. */
async function pipeline(times: number, last: string) {
  const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk', max_uses: 1_000 };
  const { origin, pathname } = new URL((await stack.issue(ask)).url);
  const call = (connection: string) =>
    `POST ${pathname} HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: ${connection}\r\n\r\n{}`;
  const socket = await openSocket(origin);
  socket.on('error', () => {});
  socket.write(call('keep-alive').repeat(times - 1) + call(last));
  let text = '';
  // The gateway may reset a connection that floods it.
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  await new Promise((resolve) => socket.once('close', resolve));
  return readAnswers(text);
}

test('of 500 calls that a connection sends at once 4 are served, and the others cost nothing', async () => {
  const answers = await pipeline(500, 'keep-alive');
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => 200));
  const left = answers.map(
    ({ headers }) => headers.find(([name]) => name === 'x-presign-uses-remaining')?.[1],
  );
  // Their order in Redis is not that of the answers.
  expect(left.map(Number).sort((a, b) => b - a)).toEqual(Array.from({ length: 4 }, (_, i) => 999 - i));
  expect(upstream.seen).toHaveLength(4);
});

test('a connection may send a few calls at once', async () => {
  upstream.seen.length = 0;
  const answers = await pipeline(3, 'close');
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 3 }, () => 200));
  expect(upstream.seen).toHaveLength(3);
});

test('a connection that sends thousands of calls at once is closed, and the process still records stacks of errors', async () => {
  const { stackTraceLimit } = Error;
  upstream.seen.length = 0;
  await pipeline(20_000, 'keep-alive');
  expect(upstream.seen.length).toBeLessThanOrEqual(4);
  expect(Error.stackTraceLimit).toBe(stackTraceLimit);
  expect((await pipeline(1, 'close')).map(({ status }) => status)).toEqual([200]);
});
