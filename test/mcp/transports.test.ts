import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { startSandboxMcp } from '@presign/local';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream } from '../harness/upstream.ts';
import { ask, outcomes, post, send, toolCall, urlOf } from './holder.ts';

let sandbox: Awaited<ReturnType<typeof startSandboxMcp>>;
let stack: Stack;
beforeAll(async () => {
  sandbox = await startSandboxMcp();
  stack = await startStack({ providers: {} });
});
afterAll(async () => {
  await stack?.close();
  await sandbox?.close();
});

const issue = async (url: string, transport?: 'http' | 'sse') =>
  urlOf(await stack.issueMcp({ servers: [{ name: 'a', url, transport }] }), 'a');

const initialize = {
  ...ask('initialize'),
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
};

describe('a URL without transport, for a server that speaks Streamable HTTP', () => {
  test('refuses the stream of the older transport, and names the field', async () => {
    const { status, messages } = await send(await issue(sandbox.url), 'GET', { accept: 'text/event-stream' });
    expect(status).toBe(400);
    const { message = '' } = messages[0]?.error ?? {};
    expect(message).toContain('The MCP server answered 400 to the GET that connects.');
    expect(message).toContain('issue a URL with "transport": "http"');
  });

  test('explains this in the status text, because clients of that transport show no body', async () => {
    const { statusText } = await fetch(await issue(sandbox.url));
    expect(statusText).toContain('issue a URL with "transport": "http"');
  });

  test('still serves clients of Streamable HTTP', async () => {
    expect(outcomes(await post(await issue(sandbox.url), initialize))).toEqual(['ran']);
  });
});

test('a URL for Streamable HTTP, to a server that speaks only HTTP+SSE, names the field', async () => {
  const url = new URL(await issue(sandbox.sseUrl, 'http'));
  const transport = new StreamableHTTPClientTransport(url) as unknown as Transport;
  const connecting = new Client({ name: 'test', version: '1.0.0' }).connect(transport);
  await expect(connecting).rejects.toThrow('issue a URL with \\"transport\\": \\"sse\\"');
});

test('a client of Streamable HTTP sees that its URL is for the other transport', async () => {
  const { status, messages } = await post(await issue(sandbox.sseUrl, 'sse'), initialize);
  expect(status).toBe(404);
  expect(messages[0]?.error?.message).toContain('This URL was issued for HTTP+SSE ("transport": "sse")');
});

test.each([404, 405])('keeps the %i that makes clients try the other transport', async (status) => {
  const upstream = await startUpstream((_seen, response) => void response.writeHead(status).end());
  expect((await post(await issue(upstream.url, 'sse'), initialize)).status).toBe(status);
  expect((await send(await issue(upstream.url), 'GET')).status).toBe(status);
  await upstream.close();
});

const HINT = { http: 'issue a URL with "transport": "http"', sse: 'issue a URL with "transport": "sse"' };
const ERRORS = [
  { code: -32601, message: 'Method not found', data: { supported: ['2026-07-28'], big: 1e21 } },
  { code: -32001, message: 'Session "a" not found' },
  { code: -32022, message: '', data: 'text' },
];
test.each(
  [400, 404, 405, 406].flatMap((status) =>
    ERRORS.flatMap((error) => (['POST', 'GET'] as const).map((method) => [status, method, error] as const)),
  ),
)(
  "the server's error with %i to the connecting %s keeps its code and data (%#)",
  async (status, method, error) => {
    const written = JSON.stringify({ jsonrpc: '2.0', id: 7, error }).replace('1e+21', '1.0e21');
    const upstream = await startUpstream(
      (_seen, response) =>
        void response.writeHead(status, { 'content-type': 'application/json' }).end(written),
    );
    const url = await issue(upstream.url, method === 'GET' ? 'sse' : 'http');
    const answer = await fetch(url, method === 'GET' ? {} : { method, body: JSON.stringify(initialize) });
    const text = await answer.text();
    const read = JSON.parse(text) as { error: { message: string } };
    expect([answer.status, read]).toMatchObject([
      status,
      { id: 7, error: { ...error, message: expect.any(String) } },
    ]);
    expect(read.error.message.startsWith(error.message)).toBe(true);
    // Only these two statuses of a POST are about its transport.
    const hasHint = method === 'GET' || status === 404 || status === 405;
    const hint = method === 'GET' ? HINT.http : HINT.sse;
    expect([read.error.message.includes(hint), answer.statusText.includes(hint)]).toEqual([hasHint, hasHint]);
    expect(text.replace(/"message":"(\\.|[^"])*"/, '')).toBe(written.replace(/"message":"(\\.|[^"])*"/, ''));
    await upstream.close();
  },
);

test.each([
  '',
  'no',
  '{"error":{"code":"x","message":"m"}}',
  '{"error":"x"}',
  '[]',
  `{"error":{"code":1,"message":"${'x'.repeat(70_000)}"}}`,
])('a 404 to initialize that is not a JSON-RPC error is replaced by one: %.40s', async (body) => {
  const upstream = await startUpstream((_seen, response) => void response.writeHead(404).end(body));
  const { status, messages } = await post(await issue(upstream.url, 'http'), initialize);
  expect([status, messages]).toMatchObject([404, [{ id: 1, error: { code: -32600 } }]]);
  expect(messages[0]?.error?.message).toContain(HINT.sse);
  await upstream.close();
});

test('the 404 of a running session passes unchanged', async () => {
  const upstream = await startUpstream((_seen, response) => void response.writeHead(404).end('gone'));
  const url = await issue(upstream.url, 'http');
  expect(await post(url, toolCall('add'))).toMatchObject({ status: 404, text: 'gone' });
  await upstream.close();
});
