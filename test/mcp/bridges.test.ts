import { createRequire } from 'node:module';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Fetched, mayFetch, startProgram } from './fetched.ts';

const require = createRequire(import.meta.url);
const EVERYTHING = require.resolve('@modelcontextprotocol/server-everything/dist/index.js');

/** Programs that put a server which speaks stdio on HTTP, and what starts them on a port. */
const BRIDGES: readonly [program: Fetched, transport: 'http' | 'sse', args: (port: string) => string[]][] = [
  ['supergateway', 'http', (port) => [...supergateway(port), 'streamableHttp', '--stateful']],
  ['supergateway', 'sse', (port) => [...supergateway(port), 'sse']],
  ['mcp-proxy', 'http', (port) => mcpProxy(port)],
  ['mcp-proxy', 'sse', (port) => mcpProxy(port)],
];

const supergateway = (port: string) => [
  ...['--stdio', `node ${EVERYTHING} stdio`, '--port', port, '--logLevel', 'none', '--outputTransport'],
];
const mcpProxy = (port: string) => [
  ...['--host', '127.0.0.1', '--port', port, '--', 'node', EVERYTHING, 'stdio'],
];

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(() => stack?.close());

describe.skipIf(!mayFetch).each(BRIDGES)('a stdio server behind %s over %s', (program, transport, args) => {
  let bridge: ReturnType<typeof startProgram>;
  let url: string;
  beforeAll(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}/${transport === 'http' ? 'mcp' : 'sse'}`;
    bridge = startProgram(program, args(String(port)));
    await eventually(() => answers(url), 50_000);
  });
  afterAll(() => bridge?.close());

  test('lists its tools and runs them through the gateway, up to max_uses', async () => {
    const { servers } = await stack.issueMcp({ servers: [{ name: 'stdio', url, transport }], max_uses: 2 });
    const client = await connect(new URL(servers.stdio?.url ?? ''), transport);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo', 'get-sum']));
    const echo = () => client.callTool({ name: 'echo', arguments: { message: 'over a pipe' } });
    expect(await echo()).toMatchObject({ content: [{ type: 'text', text: 'Echo: over a pipe' }] });
    const sum = await client.callTool({ name: 'get-sum', arguments: { a: 2, b: 40 } });
    expect(JSON.stringify(sum)).toContain('42');
    await expect(echo()).rejects.toMatchObject({ data: { code: 'uses_exhausted', limit: 2, used: 2 } });
    await client.close();
  });
});

/** Whether something listens; a stream that opens is closed again. */
async function answers(url: string): Promise<true | undefined> {
  const control = new AbortController();
  const answer = await fetch(url, { signal: control.signal }).catch(() => undefined);
  control.abort();
  return answer && true;
}

async function connect(url: URL, transport: 'http' | 'sse'): Promise<Client> {
  const client = new Client({ name: 'bridges', version: '1.0.0' });
  const over = transport === 'http' ? new StreamableHTTPClientTransport(url) : new SSEClientTransport(url);
  // The SDK's own class does not fit its own type where optional properties are exact.
  await client.connect(over as Transport);
  return client;
}
