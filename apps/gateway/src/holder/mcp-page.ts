import type { McpBundle, McpServerPolicy } from '@presign/schema';
import { html } from 'hono/html';
import { liveFacts } from './live-facts.ts';
import { code, fact, type Html } from './page.ts';
import type { Live } from './read-live.ts';

/** The page of a bundle. It links to the configuration of each client, because the configuration has secrets. */
export const bundlePage = ({ mcpServers }: McpBundle, formats: readonly string[], live: Live): Html =>
  html`<p>It connects an agent to MCP servers, without their credentials. The address of this page is a secret: whoever has it can use it.</p>
${liveFacts(live)}
<h2>What it allows</h2>
<dl>${Object.entries(mcpServers).map(([name, { transport }]) => fact(name, TRANSPORTS[transport]))}</dl>
<h2>How to use it</h2>
<p>Each link shows the configuration of a client. It has the URLs of the servers, which are secrets, too.</p>
<ul>${formats.map((format) => html`<li><a href="?format=${format}" rel="noreferrer">${format}</a></li>`)}</ul>
${code('curl', `# PRESIGN_URL is the address of this page.\ncurl "$PRESIGN_URL?format=claude-code" > .mcp.json`)}`;

/** The page of one server's URL. */
export const serverPage = (server: McpServerPolicy, live: Live): Html =>
  html`<p>It is the address of an MCP server, for an MCP client. It is a secret: whoever has it can use it.</p>
${liveFacts(live)}
<h2>What it allows</h2>
<dl>${[
    fact('Server', server.name),
    fact('Host', new URL(server.url).host),
    fact('Transport', TRANSPORTS[server.transport]),
    fact('Tools', server.tools ? server.tools.join(', ') : 'all'),
  ]}</dl>
<h2>How to use it</h2>
<p>Set the environment variable <code>PRESIGN_URL</code> to the address of this page, and give it to an MCP client as the address of the server.</p>
${code('Claude Code', `claude mcp add --transport ${server.transport} presign "$PRESIGN_URL"`)}
${server.transport === 'http' ? code('TypeScript, package @modelcontextprotocol/sdk', TYPESCRIPT) : ''}
${server.transport === 'http' ? code('Python, package mcp', PYTHON) : ''}`;

const TRANSPORTS = { http: 'Streamable HTTP', sse: 'HTTP+SSE' };

const TYPESCRIPT = `import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const client = new Client({ name: 'my-agent', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.PRESIGN_URL)));
console.log(await client.listTools());`;

const PYTHON = `import asyncio
import os
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

async def main():
    async with streamable_http_client(os.environ["PRESIGN_URL"]) as (read, write, *_):
        async with ClientSession(read, write) as session:
            await session.initialize()
            print(await session.list_tools())

asyncio.run(main())`;
