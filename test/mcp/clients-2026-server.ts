import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  acceptedContent,
  completable,
  createMcpHandler,
  inputRequired,
  inputResponse,
  McpServer,
  type McpServerFactory,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

export type Server2026 = {
  readonly url: string;
  /** Headers of each request, as they came. */
  readonly seen: readonly IncomingHttpHeaders[];
  /** How many calls were called off while they ran. */
  readonly cancelled: () => number;
  /** Notifies all subscribers that a resource has changed. */
  readonly update: (uri: string) => void;
  readonly close: () => Promise<void>;
};

/** A server of revision 2026-07-28, made with the official package; it has no sessions. */
export async function startServer2026(): Promise<Server2026> {
  const seen: IncomingHttpHeaders[] = [];
  let cancelled = 0;
  const factory = createTools(() => {
    cancelled += 1;
  });
  const handler = createMcpHandler(factory);
  const serve = toNodeHandler(handler);
  const server = createServer((request, response) => {
    seen.push(request.headers);
    // Node's own class does not fit the package's type where optional properties are exact.
    void serve(request as Parameters<typeof serve>[0], response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    seen,
    cancelled: () => cancelled,
    update: (uri) => handler.notify.resourceUpdated(uri),
    close: async () => {
      await handler.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });

const createTools =
  (onCancelled: () => void): McpServerFactory =>
  () => {
    const server = new McpServer(
      { name: 'modern', version: '1.0.0' },
      { capabilities: { logging: {}, resources: { subscribe: true } } },
    );
    addPlain(server);
    addAsking(server);
    addLong(server, onCancelled);
    addResources(server);
    addTasks(server);
    return server;
  };

function addPlain(server: McpServer): void {
  const region = z.string().meta({ 'x-mcp-header': 'Region' });
  server.registerTool('where', { inputSchema: z.object({ region }) }, (args) => ({
    ...text(args.region),
    _meta: { [RELATED_TASK]: { taskId: 't1' } },
  }));
  server.registerTool('fail', { inputSchema: z.object({}) }, () => ({ ...text('no'), isError: true }));
  server.registerPrompt(
    'greet',
    {
      argsSchema: z.object({
        name: completable(z.string(), (start) => ['Ada', 'Alan'].filter((name) => name.startsWith(start))),
      }),
    },
    ({ name }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }] }),
  );
  const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: '🌍' } }];
  server.registerPrompt('grüße', {}, () => ({ messages }));
}

/** A server asks its client for input in its answer. The client calls again with the input. */
function addAsking(server: McpServer): void {
  const wanted = z.object({ name: z.string() });
  server.registerTool('ask', { inputSchema: z.object({}) }, (_args, { mcpReq }) => {
    const given = acceptedContent(mcpReq.inputResponses, 'who', wanted);
    if (given) return text(given.name);
    const who = inputRequired.elicit({ message: 'Who?', requestedSchema: wanted });
    return inputRequired({ inputRequests: { who } });
  });
  // The second round brings the name, which the state keeps until the third has been agreed to.
  const seat = z.object({ seat: z.number() });
  server.registerTool('book', { inputSchema: seat }, ({ seat }, { mcpReq }) => {
    const name = mcpReq.requestState();
    const given = acceptedContent(mcpReq.inputResponses, 'who', wanted);
    if (name === 'asked' && given === undefined) return text('no name');
    if (name !== undefined && name !== 'asked') return text(`${name} in ${seat}`);
    const who = inputRequired.elicit({ message: 'Who?', requestedSchema: wanted });
    return inputRequired({ inputRequests: { who }, requestState: given?.name ?? 'asked' });
  });
  server.registerTool('sample', { inputSchema: z.object({}) }, (_args, { mcpReq }) => {
    const given = inputResponse(mcpReq.inputResponses, 'said');
    if (given.kind !== 'missing') return text(given.kind);
    const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: 'hi' } }];
    const said = inputRequired.createMessage({ messages, maxTokens: 5 });
    return inputRequired({ inputRequests: { said } });
  });
}

function addLong(server: McpServer, onCancelled: () => void): void {
  server.registerTool('count', { inputSchema: z.object({}) }, async (_args, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [1, 2, 3]) {
      if (progressToken === undefined) continue;
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 3 },
      });
    }
    await mcpReq.log('info', 'counted');
    return text('counted');
  });
  server.registerTool('wait', { inputSchema: z.object({}) }, async (_args, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken ?? '';
    await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
    if (!mcpReq.signal.aborted) await once(mcpReq.signal, 'abort');
    onCancelled();
    return text('called off');
  });
}

function addResources(server: McpServer): void {
  const read = (uri: URL) => ({ contents: [{ uri: uri.href, text: 'read' }] });
  server.registerResource('note', 'note://1', {}, read);
  server.registerResource('notes', new ResourceTemplate('notes://{id}', { list: undefined }), {}, read);
}

/** Names the task that a result is about. */
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/** The requests of the tasks extension (SEP-2663) about one task. */
function addTasks({ server }: McpServer): void {
  const params = z.object({ taskId: z.string() });
  server.setRequestHandler('tasks/get', { params }, ({ taskId }) => ({ taskId, status: 'working' }));
}
