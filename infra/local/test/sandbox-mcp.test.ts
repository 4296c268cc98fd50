import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SandboxMcp, startSandboxMcp } from '../src/sandbox/mcp.ts';

let sandbox: SandboxMcp;

beforeAll(async () => {
  sandbox = await startSandboxMcp();
});
afterAll(() => sandbox.close());

async function connectWith(transport: StreamableHTTPClientTransport | SSEClientTransport): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport as Transport);
  return client;
}

test.each([
  ['Streamable HTTP', () => new StreamableHTTPClientTransport(new URL(sandbox.url))],
  ['HTTP+SSE', () => new SSEClientTransport(new URL(sandbox.sseUrl))],
])('over %s the official client lists and calls the tools', async (_name, createTransport) => {
  const client = await connectWith(createTransport());
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['echo', 'add']);
  const echoed = await client.callTool({ name: 'echo', arguments: { message: 'hi' } });
  expect(echoed.content).toEqual([{ type: 'text', text: 'hi' }]);
  const added = await client.callTool({ name: 'add', arguments: { a: 2, b: 40 } });
  expect(added.content).toEqual([{ type: 'text', text: '42' }]);
  await client.close();
});

test('invalid arguments are an error of the tool', async () => {
  const client = await connectWith(new StreamableHTTPClientTransport(new URL(sandbox.url)));
  expect(await client.callTool({ name: 'add', arguments: { a: 'x' } })).toMatchObject({ isError: true });
  await client.close();
});

test('sessions are separate, and an ended session answers 404, so that a client starts another', async () => {
  const transports = [1, 2].map(() => new StreamableHTTPClientTransport(new URL(sandbox.url)));
  const [first, second] = await Promise.all(transports.map(connectWith));
  const [id, otherId] = transports.map(({ sessionId }) => sessionId);
  expect(id).not.toBe(otherId);
  await transports[0]?.terminateSession();
  const answer = await fetch(sandbox.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': String(id),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  expect(answer.status).toBe(404);
  expect((await second?.listTools())?.tools).toHaveLength(2);
  await Promise.all([first?.close(), second?.close()]);
});

test('a request without a session that does not begin one is refused', async () => {
  const answer = await fetch(sandbox.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  });
  expect(answer.status).toBe(400);
});
