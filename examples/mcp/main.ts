/** An agent gets one address for its MCP servers, and may run three tools: no more, and no other server. */
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpError } from '@modelcontextprotocol/sdk/types.js';

const issuer = process.env.ISSUER_URL ?? 'http://127.0.0.1:8787';
const server = process.env.MCP_SERVER_URL ?? 'http://127.0.0.1:8790/mcp';
const apiKeyFile = new URL('../../.presign/api-key', import.meta.url);
const apiKey = process.env.PRESIGN_API_KEY ?? readFileSync(apiKeyFile, 'utf8').trim();

// The backend names the servers, and what each of them wants as authentication; the sandbox wants none.
const issued = await fetch(`${issuer}/v2/mcp-presign`, {
  method: 'POST',
  headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
  body: JSON.stringify({
    servers: [{ name: 'sandbox', url: server, transport: 'http', pricing: { tools: { add: 250 } } }],
    max_uses: 3,
    cost_limit: 10_000,
    expires_in: 600,
  }),
});
assert.equal(issued.status, 200, await issued.clone().text());
const { bundle_url } = (await issued.json()) as { bundle_url: string };
process.stdout.write(`One address for all servers:\n${bundle_url.slice(0, 60)}…\n\n`);

// The agent fetches the configuration that MCP clients read, and connects as to any server.
const bundle = await fetch(bundle_url);
assert.equal(bundle.status, 200, await bundle.clone().text());
const { mcpServers } = (await bundle.json()) as { mcpServers: Record<string, { url: string }> };
const url = new URL(mcpServers.sandbox?.url ?? '');

const client = new Client({ name: 'example', version: '1.0.0' });
// The SDK's own class does not fit its own type where optional properties are exact.
type Transport = Parameters<Client['connect']>[0];
await client.connect(new StreamableHTTPClientTransport(url) as Transport);

// Connecting and asking what there is costs nothing.
const { tools } = await client.listTools();
process.stdout.write(`Tools: ${tools.map(({ name }) => name).join(', ')}\n`);

const add = async (a: number, b: number) => {
  const { content } = await client.callTool({ name: 'add', arguments: { a, b } });
  return (content as { text: string }[])[0]?.text;
};
for (const [a, b, sum] of [
  [2, 40, '42'],
  [1, 1, '2'],
  [3, 4, '7'],
] as const) {
  assert.equal(await add(a, b), sum);
  process.stdout.write(`${a} + ${b} = ${sum}\n`);
}

// The fourth call does not reach the server: the client hears why.
const refusal = await add(5, 5).catch((error: unknown) => error);
assert.ok(refusal instanceof McpError, 'the fourth call was let through');
const { code } = refusal.data as { code: string };
assert.equal(code, 'uses_exhausted');
process.stdout.write(`And the fourth: ${code}: ${refusal.message}\n`);
await client.close();
