import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** One JSON-RPC message, as far as these tests look. */
export type Rpc = {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: unknown };
};

/** One request as the server saw it. */
export type Arrived = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
};

/** Answers in the server's place; false: the server answers as always. */
export type Behaviour = (arrived: Arrived, response: ServerResponse, request: IncomingMessage) => unknown;

export type McpUpstream = {
  readonly origin: string;
  /** The Streamable HTTP endpoint. */
  readonly url: string;
  /** The stream of the older HTTP+SSE transport. */
  readonly sseUrl: string;
  readonly arrived: readonly Arrived[];
  /** Names of the tools that ran, in order. */
  readonly ran: readonly string[];
  /** GET streams that are open. */
  readonly streams: ReadonlySet<ServerResponse>;
  /** How POSTs to the Streamable HTTP endpoint are answered. */
  form: 'json' | 'sse';
  behaves: Behaviour | undefined;
  /** The data of the older transport's `endpoint` event. */
  endpoint: string;
  /** Refuses connections from now on; those that are open stay. */
  readonly stopListening: () => void;
  readonly close: () => Promise<void>;
};

/** An error of this code instead of running: a tool `error-32602` answers -32602. */
const ERROR_TOOL = /^error(-\d+)$/;

/**
 * An MCP server on a real socket that counts what it runs. A tool runs, whatever its name; but `error<code>` is
 * answered with that JSON-RPC error and does not run, and `fails` runs to a result that is an error.
 */
export async function startMcpUpstream(): Promise<McpUpstream> {
  const arrived: Arrived[] = [];
  const ran: string[] = [];
  const streams = new Set<ServerResponse>();
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const { method = '', url = '', headers } = request;
    const one = { method, url, headers, body };
    arrived.push(one);
    if (self.behaves && self.behaves(one, response, request) !== false) return;
    if (method === 'GET') return startStream(url, response);
    if (method === 'DELETE') return void response.writeHead(204).end();
    const answers = run(body, ran);
    if (url.startsWith('/messages')) return tellStreams(answers, response);
    answer(answers, body.startsWith('['), response);
  });
  const startStream = (url: string, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    streams.add(response);
    response.once('close', () => streams.delete(response));
    if (url.startsWith('/sse')) response.write(`event: endpoint\ndata: ${self.endpoint}\n\n`);
  };
  /** No session here: whoever listens hears all. */
  const tellStreams = (answers: readonly object[], response: ServerResponse) => {
    response.writeHead(202, { connection: 'close' }).end('Accepted');
    for (const stream of streams) for (const each of answers) stream.write(eventOf(each));
  };
  const answer = (answers: readonly object[], isBatch: boolean, response: ServerResponse) => {
    const session = { 'mcp-session-id': 'session-of-the-server' };
    if (answers.length === 0) return response.writeHead(202, session).end();
    if (self.form === 'sse') {
      response.writeHead(200, { ...session, 'content-type': 'text/event-stream' });
      return response.end(answers.map(eventOf).join(''));
    }
    response.writeHead(200, { ...session, 'content-type': 'application/json' });
    return response.end(JSON.stringify(isBatch ? answers : answers[0]));
  };
  // On a busy machine it could close a kept connection while a call comes on it.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const self: McpUpstream = {
    ...{ origin, url: `${origin}/mcp`, sseUrl: `${origin}/sse`, arrived, ran, streams },
    form: 'json',
    behaves: undefined,
    endpoint: '/messages?session=1',
    stopListening: () => void server.close(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return self;
}

/** The answers to a POST's requests; notes the tools that ran. */
export function run(body: string, ran: string[]): object[] {
  const read = JSON.parse(body) as Rpc | Rpc[];
  const all = Array.isArray(read) ? read : [read];
  return all.flatMap(({ id, method, params }): object[] => {
    const [, code] = ERROR_TOOL.exec(params?.name ?? '') ?? [];
    if (method === 'tools/call' && code === undefined) ran.push(params?.name ?? '');
    if (id === undefined || method === undefined) return [];
    if (code !== undefined) return [{ jsonrpc: '2.0', id, error: { code: Number(code), message: 'no' } }];
    const isError = params?.name === 'fails';
    return [{ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }], isError } }];
  });
}

/** The id, as JSON, under which a server knows the last list of tools that it was asked for. */
export function listId({ arrived }: Pick<McpUpstream, 'arrived'>): string {
  const all = arrived.flatMap(({ body }) => (body === '' ? [] : (JSON.parse(body) as Rpc | Rpc[])));
  return JSON.stringify(all.findLast(({ method }) => method === 'tools/list')?.id);
}

export const eventOf = (message: object): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;
