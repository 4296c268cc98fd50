import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

export type Json = Record<string, unknown>;

/** One socket as the provider sees it. */
export type ProviderSocket = {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  readonly frames: Json[];
  readonly raw: string[];
};

/** Answers an event as the provider does. */
export type Serve = (event: Json, of: ProviderSocket) => void | Promise<void>;

export type ResponsesProvider = {
  readonly url: string;
  readonly sockets: ProviderSocket[];
  /** Requests that were no handshakes. */
  readonly posts: string[];
  serve: Serve;
  /** Greets each socket. */
  welcome: ((of: ProviderSocket) => void) | undefined;
  /** Answers handshakes in place of an upgrade. */
  refuse: ((request: IncomingMessage) => { status: number; body: string } | undefined) | undefined;
  /** Further lines of the head that accepts a handshake. */
  headers: ((request: IncomingMessage) => string[]) | undefined;
  /** Tokens of input and output that it billed, by its own books. */
  billed: number;
  readonly frames: () => Json[];
  readonly raw: () => string[];
  readonly close: () => Promise<void>;
};

let ids = 0;
export const nextId = () => `resp_${++ids}`;

const usage = (input: number, output: number) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input + output,
});

/** The events of a response: `created`, a word, and its end. */
export function eventsOf(
  event: Json,
  { input = 10, output = 5, id = nextId(), type = 'response.completed' } = {},
) {
  const lane = event.stream_id === undefined ? {} : { stream_id: event.stream_id };
  const response = { id, object: 'response', model: event.model, service_tier: 'default', tools: [] };
  const output_ = [
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] },
  ];
  const status = type.split('.')[1];
  return [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] }, ...lane },
    { type: 'response.output_text.delta', item_id: 'm', delta: 'Hello.', ...lane },
    { type, response: { ...response, status, output: output_, usage: usage(input, output) }, ...lane },
  ];
}

/**
 * A provider of Responses over sockets. It answers each `response.create`, and bills by its own books.
 * @param pem its key and certificate, if it speaks TLS. Its host is `localhost` then.
 */
export async function startResponsesProvider(pem?: {
  readonly key: string;
  readonly cert: string;
}): Promise<ResponsesProvider> {
  const sockets: ProviderSocket[] = [];
  const connections = new Set<Socket>();
  const posts: string[] = [];
  const provider: ResponsesProvider = {
    url: '',
    sockets,
    posts,
    welcome: undefined,
    refuse: undefined,
    headers: undefined,
    billed: 0,
    serve: (event, { socket }) => {
      for (const each of eventsOf(event)) socket.send(JSON.stringify(each));
      provider.billed += 15;
    },
    frames: () => sockets.flatMap(({ frames }) => frames),
    raw: () => sockets.flatMap(({ raw }) => raw),
    close: () =>
      new Promise((resolve) => {
        for (const connection of connections) connection.destroy();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  wss.on('headers', (lines, request) => void lines.push(...(provider.headers?.(request) ?? [])));
  const server = pem ? createTlsServer(pem) : createServer();
  // An HTTP server forgets connections that are upgraded, and waits for them when it closes.
  server.on('connection', (connection: Socket) => {
    connections.add(connection);
    connection.once('close', () => connections.delete(connection));
  });
  server.on('request', (request, response) => {
    posts.push(`${request.method} ${request.url}`);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  });
  server.on('upgrade', (request, socket, head) => {
    const refused = provider.refuse?.(request);
    if (refused) {
      const { status, body } = refused;
      socket.end(
        `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
      );
      return;
    }
    wss.handleUpgrade(request, socket, head, (accepted) => {
      const of: ProviderSocket = { socket: accepted, request, frames: [], raw: [] };
      sockets.push(of);
      accepted.on('error', () => {});
      accepted.on('message', (data, isBinary) => {
        of.raw.push(isBinary ? '(binary)' : String(data));
        const event = JSON.parse(String(data)) as Json;
        of.frames.push(event);
        void provider.serve(event, of);
      });
      provider.welcome?.(of);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(provider, { url: pem ? `https://localhost:${port}` : `http://127.0.0.1:${port}` });
}
