import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { at, post, toolCall, urlOf } from '../mcp/holder.ts';
import { listen, openSession } from '../mcp/listen.ts';
import { eventOf, type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';

const KIB = 1024;
const KEY = 'key-"quoted"/1234567890';
const AUTH = { auth_type: 'api_key', auth_config: { key: KEY, query: 'key' } };

let upstream: McpUpstream;
let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(() => stack.close());
beforeEach(async () => {
  upstream = await startMcpUpstream();
  return () => upstream.close();
});

const issue = (policy: object = {}, server: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http', ...server }], ...policy });
const stream = { 'content-type': 'text/event-stream' };

describe('a credential that a server quotes on a stream is masked', () => {
  const quoting = eventOf({ jsonrpc: '2.0', id: 1, result: { quoted: [KEY, encodeURIComponent(KEY)] } });

  test('wherever its chunks end', async () => {
    const url = urlOf(await issue({}, AUTH), 'a');
    const begins = quoting.indexOf('key-');
    for (const cut of [begins, begins + 1, begins + 12, quoting.length - 2]) {
      upstream.behaves = (_arrived, response) => {
        response.writeHead(200, stream).write(quoting.slice(0, cut));
        setImmediate(() => response.end(quoting.slice(cut)));
      };
      const { text, messages } = await post(url, toolCall('run', 1));
      expect(text.length).toBe(quoting.length);
      expect(messages).toMatchObject([{ id: 1, result: { quoted: ['*'.repeat(25), '*'.repeat(29)] } }]);
    }
  });

  test('in an event that is too long to be read', async () => {
    const url = urlOf(await issue({}, AUTH), 'a');
    const padding = Buffer.alloc(17 * KIB * KIB, 'x');
    upstream.behaves = (_arrived, response) => {
      response.writeHead(200, stream).write('data: ');
      response.write(padding);
      response.end(`${quoting} and not ended`);
    };
    const { text } = await post(url, toolCall('run', 1));
    expect(text.length).toBe('data: '.length + padding.length + quoting.length + ' and not ended'.length);
    expect(text).not.toContain('1234567890');
  });

  test('in the older transport, where the endpoint that the server names still works', async () => {
    upstream.endpoint = `/messages?session=1&own=${encodeURIComponent(KEY)}`;
    const sse = { url: upstream.sseUrl, transport: 'sse', ...AUTH };
    const { stream: opened, endpoint } = await openSession(stack, urlOf(await issue({}, sse), 'a'));
    expect((await post(endpoint, toolCall('run', 1))).status).toBe(202);
    expect(upstream.arrived.at(-1)?.url).toContain(`own=${encodeURIComponent(KEY)}`);
    for (const each of upstream.streams) each.write(quoting);
    await opened.reached(2);
    expect(opened.text()).not.toContain('1234567890');
    opened.leave();
  });
});

test('a client that does not read its stream is disconnected, however many refusals wait for it', async () => {
  const sse = { url: upstream.sseUrl, transport: 'sse' };
  const url = urlOf(await issue({ max_uses: 1 }, sse), 'a');
  const { pathname, search, origin } = new URL(url);
  const socket = await openSocket(origin);
  const head = new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes))));
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: g\r\nAccept: text/event-stream\r\n\r\n`);
  let text = await head;
  while (!/data: .*\n/.test(text))
    text += await new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes))));
  socket.pause();
  const endpoint = at(stack, 0, new URL(/data: (.*)\n/.exec(text)?.[1] ?? '', url).href);
  expect((await post(endpoint, toolCall('run'))).status).toBe(202);
  const batch = Array.from({ length: 60 }, (_, i) => toolCall('run', `${i}`.padEnd(1_000)));
  let sent = 0;
  // Each refusal has 70 KB. The sockets of both sides hold a few megabytes.
  while ((await post(endpoint, batch)).status === 202 && sent < 1_000) sent++;
  expect(sent).toBeGreaterThan(3);
  expect(sent).toBeLessThan(1_000);
  socket.destroy();
});

describe('the parts of answers that a gateway stores count against the memory of their URL', () => {
  const small = { maxHeldBodyBytes: 256 * KIB, maxBodyBytes: 64 * KIB };

  test('an answer in one piece that does not fit passes unchanged', async () => {
    const url = urlOf(await issue(), 'a');
    const [roomy = '', gateway] = [stack.gatewayUrls[0], await stack.addGateway(small)];
    upstream.behaves = (_arrived, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).write(`"${'x'.repeat(200 * KIB)}`);
    const leaving = new AbortController();
    const ask = (origin: string) =>
      fetch(at(stack, origin, url), {
        method: 'POST',
        body: JSON.stringify(toolCall('run')),
        signal: leaving.signal,
      });
    // Kept, so that its charge can be refunded before it ends.
    const kept = ask(roomy);
    expect((await ask(gateway)).status).toBe(200);
    leaving.abort();
    await expect(kept).rejects.toThrow();
  });

  test('short events without an end, on many streams', async () => {
    const url = at(stack, await stack.addGateway(small), urlOf(await issue(), 'a'));
    const half = `data: ${'x'.repeat(40 * KIB)}`;
    upstream.behaves = (_arrived, response) => void response.writeHead(200, stream).write(half);
    const streams = await Promise.all(Array.from({ length: 6 }, () => listen(url)));
    // The URL may use half of what is kept for small bodies, and its share of the rest: 144 KiB of 256.
    await eventually(async () => streams.filter((each) => each.text().length >= half.length).length >= 3);
    expect(streams.filter((each) => each.text() === '').length).toBeGreaterThan(0);
    for (const each of streams) each.leave();
  });
});
