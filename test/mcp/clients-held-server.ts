import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { Server as Server2 } from '@modelcontextprotocol/server';
import type { Generation } from './clients-drive.ts';

/**
 * A server made with the official SDK whose tools take as long as the test likes: `wait` until it is cancelled, and `hold` until `go`. `ask`
 * then asks its client, and `poll` answers on a stream that its client has to take up again. Others run at once.
 */
export type HeldServer = {
  /** The tools that were called, in order. */
  readonly called: readonly string[];
  readonly url: string;
  readonly sseUrl: string;
  readonly go: () => void;
  readonly close: () => void;
};

type Handling = Pick<StreamableHTTPServerTransport, 'handleRequest'>;
type Extra = {
  readonly signal: AbortSignal;
  readonly elicit?: () => Promise<unknown>;
  readonly closeStream?: (() => void) | undefined;
};

const INFO = [{ name: 'held', version: '1' }, { capabilities: { tools: {} } }] as const;
const QUESTION = {
  method: 'elicitation/create',
  params: { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } },
} as const;

export async function startHeldServer(generation: Generation, isJson = false): Promise<HeldServer> {
  const called: string[] = [];
  let go = () => {};
  const goes = new Promise<void>((resolve) => {
    go = resolve;
  });
  const run = async (name: string, { signal, elicit, closeStream }: Extra) => {
    called.push(name);
    if (name === 'wait' && !signal.aborted) await once(signal, 'abort');
    if (name === 'poll') closeStream?.();
    if (name === 'poll' || name === 'hold' || name === 'ask') await goes;
    const text = name === 'ask' ? JSON.stringify(await elicit?.()) : name;
    return { content: [{ type: 'text' as const, text }] };
  };
  const sessions = new Map<string, Handling>();
  const streams = new Map<string, SSEServerTransport>();
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://server');
    if (pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', response);
      streams.set(transport.sessionId, transport);
      return (await serverOf1(run)).connect(transport);
    }
    if (pathname === '/messages')
      return streams.get(searchParams.get('sessionId') ?? '')?.handlePostMessage(request, response);
    const known = sessions.get(String(request.headers['mcp-session-id']));
    const transport = known ?? (await begin(generation, isJson, run, sessions));
    await transport.handleRequest(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { called, url: `${origin}/mcp`, sseUrl: `${origin}/sse`, go: () => go(), close };
}

type Run = (name: string, extra: Extra) => Promise<{ content: { type: 'text'; text: string }[] }>;

async function begin(generation: Generation, isJson: boolean, run: Run, sessions: Map<string, Handling>) {
  const options = {
    sessionIdGenerator: randomUUID,
    enableJsonResponse: isJson,
    onsessioninitialized: (id: string) => void sessions.set(id, transport),
  };
  const transport: Handling =
    generation === 'v1'
      ? new StreamableHTTPServerTransport({
          ...options,
          eventStore: new InMemoryEventStore(),
          retryInterval: 200,
        })
      : new NodeStreamableHTTPServerTransport(options);
  if (transport instanceof NodeStreamableHTTPServerTransport) {
    const server = new Server2(...INFO);
    server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
      run(params.name, { signal: mcpReq.signal }),
    );
    await server.connect(transport);
  } else {
    const server = serverOf1(run);
    await server.connect(transport as StreamableHTTPServerTransport as Parameters<typeof server.connect>[0]);
  }
  return transport;
}

function serverOf1(run: Run) {
  const server = new Server(...INFO);
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal, sendRequest, closeSSEStream }) =>
    run(params.name, {
      signal,
      elicit: () => sendRequest(QUESTION, ElicitResultSchema),
      closeStream: closeSSEStream,
    }),
  );
  return server;
}
