import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Server as Server2 } from '@modelcontextprotocol/server';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, at, post, toolCall, urlOf } from './holder.ts';
import { listId, type McpUpstream, startMcpUpstream } from './upstream.ts';

let stack: Stack;
let upstream: McpUpstream;

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2 });
  upstream = await startMcpUpstream();
});
afterAll(async () => {
  await stack?.close();
  await upstream?.close();
});
beforeEach(() => {
  upstream.behaves = undefined;
});

const issue = async (url = upstream.url) => {
  const servers = [{ name: 'a', url, transport: 'http', tools: ['add'] }];
  return urlOf(await stack.issueMcp({ servers }), 'a');
};
const TOOLS = ['add', 'secret'].map((name) => ({ name, inputSchema: { type: 'object' as const } }));
const ALLOWED = TOOLS.slice(0, 1);
const STREAM = { 'content-type': 'text/event-stream' };

/** The server begins both, and ends each when it is let go on. */
type Work = { list: Promise<void>; call: Promise<void>; asked: string[] };
type Handling = Pick<StreamableHTTPServerTransport, 'handleRequest'>;

const INFO = [{ name: 'slow', version: '1' }, { capabilities: { tools: {} } }] as const;
const listed = async (work: Work) => {
  work.asked.push('list');
  await work.list;
  return { tools: TOOLS };
};
const called = async (work: Work) => {
  work.asked.push('call');
  await work.call;
  return { content: [{ type: 'text' as const, text: 'done' }] };
};

/** A session of a server that asks others before it lists or runs a tool, made with each generation of the official SDK. */
const SESSIONS: Record<
  string,
  (begun: (id: string, transport: Handling) => void, work: Work) => Promise<Handling>
> = {
  v1: async (begun, work) => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => begun(id, transport),
    });
    const server = new Server(...INFO);
    server.setRequestHandler(ListToolsRequestSchema, () => listed(work));
    server.setRequestHandler(CallToolRequestSchema, () => called(work));
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    return transport;
  },
  v2: async (begun, work) => {
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => begun(id, transport),
    });
    const server = new Server2(...INFO);
    server.setRequestHandler('tools/list', () => listed(work));
    server.setRequestHandler('tools/call', () => called(work));
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    return transport;
  },
};

async function startSlow(generation: string, work: Work) {
  const sessions = new Map<string, Handling>();
  const server = createServer(async (request, response) => {
    const known = sessions.get(String(request.headers['mcp-session-id']));
    const begun = (id: string, transport: Handling) => void sessions.set(id, transport);
    const transport = known ?? (await SESSIONS[generation]?.(begun, work));
    await transport?.handleRequest(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function gate() {
  let open = () => {};
  const passes = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passes, open: () => open() };
}

const INITIALIZE = {
  ...ask('initialize', 0),
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'holder', version: '1' } },
};

describe.each(Object.keys(SESSIONS))('a server of the %s SDK with a slow list', (generation) => {
  test.each([
    ['a number', 5],
    ['a string', 'five'],
  ])(
    'answers a list and a call with the same id, %s, each on its stream, and the list has the allowed tools',
    async (_what, id) => {
      const [list0, call0] = [gate(), gate()];
      const work: Work = { list: list0.passes, call: call0.passes, asked: [] };
      const server = await startSlow(generation, work);
      const url = await issue(server.url);
      const own = { 'mcp-session-id': String((await post(url, INITIALIZE)).headers['mcp-session-id']) };
      await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, own);
      const list = post(url, ask('tools/list', id), own);
      await eventually(async () => work.asked.includes('list'));
      const call = post(at(stack, 1, url), toolCall('add', id), own);
      await eventually(async () => work.asked.includes('call'));
      list0.open();
      expect((await list).messages).toMatchObject([{ id, result: { tools: ALLOWED } }]);
      call0.open();
      const answer = await call;
      expect(answer.messages).toMatchObject([{ id, result: { content: [{ text: 'done' }] } }]);
      expect((await list).text + answer.text).not.toContain('secret');
      server.close();
    },
  );
});

test.each([
  ['without an id', {}],
  ['with null as its id', { id: null }],
])('a list requested %s has the allowed tools if a server answers it anyway', async (_what, id) => {
  for (const type of ['application/json', 'text/event-stream']) {
    const text = JSON.stringify({ jsonrpc: '2.0', ...id, result: { tools: TOOLS } });
    upstream.behaves = (_arrived, response) =>
      response
        .writeHead(200, { 'content-type': type })
        .end(type === 'application/json' ? text : `event: message\ndata: ${text}\n\n`);
    const heard = await post(await issue(), { jsonrpc: '2.0', ...id, method: 'tools/list' });
    expect(heard.messages).toEqual([{ jsonrpc: '2.0', ...id, result: { tools: ALLOWED } }]);
  }
});

const IDS = [7, 0, -1, '9007199254740993', '"7"', '""', '"ü🌍\\u0000\\""', JSON.stringify('x'.repeat(1_024))];
test.each(IDS)('a list whose id is %s is answered with that id', async (id) => {
  const url = await issue();
  const result = { tools: TOOLS };
  for (const form of ['json', 'sse'] as const)
    for (const answer of [{ result }, { error: { code: -32603, message: 'no' } }]) {
      upstream.behaves = (_arrived, response) => {
        const text = JSON.stringify({ jsonrpc: '2.0', ...answer, id: '#' }).replace('"#"', listId(upstream));
        response.writeHead(200, form === 'sse' ? STREAM : { 'content-type': 'application/json' });
        return response.end(form === 'sse' ? `data: ${text}\n\n` : text);
      };
      const { text } = await post(url, `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`);
      const shown = JSON.stringify('result' in answer ? { result: { tools: ALLOWED } } : answer).slice(1, -1);
      const written = JSON.stringify({ of: JSON.parse(`${id}`) as unknown }).slice(6, -1);
      const digits = typeof id === 'string' && !id.startsWith('"') ? id : written;
      expect(text.trim().replace(/^data: /, '')).toBe(`{"jsonrpc":"2.0",${shown},"id":${digits}}`);
    }
});

test("an id in the gateway's own form is refused", async () => {
  const before = upstream.arrived.length;
  const heard = await post(await issue(), toolCall('add', 'presign-list-n5'));
  expect([heard.status, heard.messages[0]?.error?.code]).toEqual([400, -32600]);
  expect(upstream.arrived.length).toBe(before);
});

test('the last event id of a stream is sent only with a GET', async () => {
  upstream.behaves = (_arrived, response) => response.writeHead(200, STREAM).end('id: 1\ndata: \n\n');
  const url = await issue();
  const [, id = ''] = /^id: (.*)$/m.exec((await post(url, ask('tools/list', 7))).text) ?? [];
  await post(url, toolCall('add'), { 'last-event-id': id });
  expect(upstream.arrived.at(-1)?.headers['last-event-id']).toBeUndefined();
});
