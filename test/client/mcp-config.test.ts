import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { createPresign, type McpPresignAnswer, mcpConfig } from '@presign/client';
import { startSandboxMcp } from '@presign/local';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';

let sandbox: Awaited<ReturnType<typeof startSandboxMcp>>;
let stack: Stack;
let bundle: McpPresignAnswer;

beforeAll(async () => {
  sandbox = await startSandboxMcp();
  stack = await startStack({ providers: {} });
  const presign = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
  bundle = await presign.mcpPresign({
    servers: [
      { name: 'new', url: sandbox.url, transport: 'http' },
      { name: 'old', url: sandbox.sseUrl, transport: 'sse' },
    ],
  });
});
afterAll(async () => {
  await stack.close();
  await sandbox.close();
});

test('the configuration equals the document of the bundle URL', async () => {
  expect(mcpConfig(bundle)).toEqual(await (await fetch(bundle.bundle_url)).json());
});

test.each(['new', 'old'])(
  'the official client runs a tool with the configuration of the server %s',
  async (name) => {
    const { url = '', transport } = mcpConfig(bundle).mcpServers[name] ?? {};
    const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
    const client = new Client({ name: 'test', version: '1.0.0' });
    // The SDK's own class does not fit its own type where optional properties are exact.
    await client.connect(new Transport(new URL(url)) as Parameters<Client['connect']>[0]);
    const { content } = await client.callTool({ name: 'add', arguments: { a: 2, b: 40 } });
    expect(content).toEqual([{ type: 'text', text: '42' }]);
    await client.close();
  },
);
