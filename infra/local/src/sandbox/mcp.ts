import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { z } from 'zod';

export type SandboxMcp = {
  /** The Streamable HTTP endpoint. */
  url: string;
  /** The endpoint of the older HTTP+SSE transport. */
  sseUrl: string;
  close(): Promise<void>;
};

/** Starts an MCP server with the tools `echo` and `add`, on loopback alone, for a first try and for tests. */
export async function startSandboxMcp({
  host = '127.0.0.1',
  port = 0,
}: {
  host?: '127.0.0.1';
  port?: number;
} = {}): Promise<SandboxMcp> {
  const sessions: Sessions = new Map();
  const server = createServer((request, response) => {
    route(sessions, request, response).catch(() => {
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  server.listen(port, host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the sandbox listens on no port');
  const origin = `http://${host}:${address.port}`;
  return {
    url: `${origin}/mcp`,
    sseUrl: `${origin}/sse`,
    async close() {
      await Promise.all(Array.from(sessions.values(), (session) => session.close()));
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Session = StreamableHTTPServerTransport | SSEServerTransport;
type Sessions = Map<string, Session>;

/** Clients that vanish without a DELETE leave their sessions; the oldest go first. */
const MOST_SESSIONS = 1_000;

/** The tools alone are described here; the SDK does the rest of the protocol. */
function createTools(): McpServer {
  const server = new McpServer({ name: 'presign-sandbox', version: '1.0.0' });
  server.registerTool(
    'echo',
    { description: 'Returns the message it is given', inputSchema: { message: z.string() } },
    ({ message }) => ({ content: [{ type: 'text', text: message }] }),
  );
  server.registerTool(
    'add',
    { description: 'Adds two numbers', inputSchema: { a: z.number(), b: z.number() } },
    ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
  );
  return server;
}

async function route(sessions: Sessions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://sandbox');
  if (pathname === '/mcp') return streamableHttp(sessions, request, response);
  if (pathname === '/sse' && request.method === 'GET') return startSse(sessions, response);
  if (pathname === '/messages' && request.method === 'POST') {
    const session = sessions.get(searchParams.get('sessionId') ?? '');
    if (session instanceof SSEServerTransport) return session.handlePostMessage(request, response);
  }
  response.writeHead(404).end();
}

/** A request without a session id can only begin a session: the SDK refuses any other. */
async function streamableHttp(
  sessions: Sessions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const id = request.headers['mcp-session-id'];
  if (id === undefined) return (await beginSession(sessions)).handleRequest(request, response);
  const session = sessions.get(String(id));
  if (session instanceof StreamableHTTPServerTransport) return session.handleRequest(request, response);
  // Streamable HTTP, "Session Management": on a 404 the client initializes again.
  response.writeHead(404, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({ jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null }),
  );
}

async function beginSession(sessions: Sessions): Promise<StreamableHTTPServerTransport> {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    onsessioninitialized: (id) => remember(sessions, id, transport),
  });
  transport.onclose = () => sessions.delete(transport.sessionId ?? '');
  // The SDK's own class does not fit its own type where optional properties are exact.
  await createTools().connect(transport as Transport);
  return transport;
}

/** HTTP+SSE of revision 2024-11-05: the stream's first event names the address to post to. */
async function startSse(sessions: Sessions, response: ServerResponse): Promise<void> {
  const transport = new SSEServerTransport('/messages', response);
  transport.onclose = () => sessions.delete(transport.sessionId);
  remember(sessions, transport.sessionId, transport);
  await createTools().connect(transport);
}

function remember(sessions: Sessions, id: string, session: Session): void {
  sessions.set(id, session);
  const [oldest] = sessions.values();
  if (sessions.size > MOST_SESSIONS) void oldest?.close();
}
