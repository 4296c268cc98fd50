/** From nothing to a tool call: a backend issues a bundle, an MCP client loads it. */
import { strict as assert } from 'node:assert';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { presign, reasonIn, sandboxMcpUrl } from '../presign.ts';

const url = await sandboxMcpUrl();

// The backend names the servers, and what each of them wants as authentication; the sandbox wants none.
const { bundle_url } = await presign.mcpPresign({
  servers: [{ name: 'sandbox', url, transport: 'http' }],
  max_uses: 3,
});
process.stdout.write(`One address for all servers:\n${bundle_url.slice(0, 60)}…\n`);

// Whoever has that address loads from it what MCP clients read, and connects as to any server.
const bundle = await fetch(bundle_url);
assert.equal(bundle.status, 200, await reasonIn(bundle));
const { mcpServers } = (await bundle.json()) as {
  mcpServers: Record<string, { url: string }>;
};
const client = new Client({ name: 'example', version: '1.0.0' });
// The SDK's own class does not fit its own type where optional properties are exact.
type Transport = Parameters<Client['connect']>[0];
await client.connect(new StreamableHTTPClientTransport(new URL(mcpServers.sandbox?.url ?? '')) as Transport);
const { content } = await client.callTool({ name: 'add', arguments: { a: 2, b: 40 } });
await client.close();

const [said] = content as { text: string }[];
assert.equal(said?.text, '42');
process.stdout.write(`2 + 40 = ${said.text}\n`);
