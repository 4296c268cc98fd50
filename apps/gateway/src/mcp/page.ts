import type { IncomingMessage } from 'node:http';
import type { McpBundle, McpServerPolicy, Refusal } from '@presign/schema';
import type { Context, Handler } from 'hono';
import { html } from 'hono/html';
import type { GatewayEnv } from '../call-deps.ts';
import { CallReport } from '../call-report.ts';
import { boundOrigin } from '../grant/bind.ts';
import type { McpGrant } from '../grant/verify.ts';
import { asksForPage, code, fact, type Html, liveFacts, pageAnswer, refusalPage } from '../holder/page.ts';
import { type Live, readForHolder } from '../holder/read-live.ts';
import { checkQuota } from '../share/read-quota.ts';
import { bundleRefusalAnswer } from './answer/refuse.ts';
import type { McpDeps } from './request/mcp-deps.ts';
import { identify } from './request/request.ts';

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

/**
 * Answers a browser that opens the URL of an MCP server with a page that says what the URL allows. Other requests continue. It costs no
 * use.
 */
export function describeServer(deps: McpDeps): Handler<GatewayEnv> {
  return async (c, next) => {
    if (!asksForPage(c)) return next();
    const report = new CallReport('describe', c.get('requestId'), c.env.incoming as IncomingMessage);
    report.provider = 'mcp';
    let refusal: Refusal | undefined = { code: 'internal_error' };
    let status: number | undefined;
    try {
      const found = await findServer(deps, report, c);
      refusal = 'refusal' in found ? found.refusal : undefined;
      const answer = await ('refusal' in found
        ? refusalPage(found.refusal, bundleRefusalAnswer(found.refusal, report.requestId), report.requestId)
        : pageAnswer('The URL of an MCP server', found.page, found));
      status = answer.status;
      return answer;
    } finally {
      deps.report(report, refusal, status);
    }
  };
}

type Found = { readonly page: Html; readonly origin: string | undefined } | { readonly refusal: Refusal };

async function findServer(deps: McpDeps, report: CallReport, c: Context<GatewayEnv>): Promise<Found> {
  const incoming = c.env.incoming as IncomingMessage;
  // HEAD is checked like GET, because a browser sends both alike.
  const identified = identify(deps, { url: incoming.url, method: 'GET', headers: incoming.headers });
  report.grant = 'refusal' in identified ? identified.signed : identified.grant;
  const spent = checkQuota(deps.readQuota, report.grant);
  if (spent) return { refusal: spent };
  if ('refusal' in identified) return identified;
  const begun = deps.freeWork.begin(identified.grant.id, 1, true);
  if ('refusal' in begun) return begun;
  return readServer(deps, report, incoming, identified.grant).finally(begun.end);
}

async function readServer(
  deps: McpDeps,
  report: CallReport,
  incoming: IncomingMessage,
  grant: McpGrant,
): Promise<Found> {
  const found = await readForHolder(deps, report, incoming, grant);
  if ('refusal' in found) return found;
  const { policy, live } = found;
  if (!policy.server) return { refusal: { code: 'token_invalid' } };
  return { page: serverPage(policy.server, live), origin: boundOrigin(policy, incoming.headers) };
}
