import {
  Client as ClientV2,
  StreamableHTTPClientTransport as HttpV2,
  SSEClientTransport as SseV2,
} from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SseV1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks';
import type { Transport as TransportV1 } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { eventually } from '../harness/eventually.ts';
import type { Road } from './clients-road.ts';

export type Transport = 'http' | 'sse';
/** The official SDK of the first generation, and the client package of the second. */
export type Generation = 'v1' | 'v2';

/** A connected client and what it met. */
export type Driven = {
  readonly client: ClientV1 | ClientV2;
  readonly transport: HttpV1 | HttpV2 | SseV1 | SseV2;
  readonly road: Road;
  /** Notifications of the server, as they came. */
  readonly heard: { readonly method: string; readonly params?: Record<string, unknown> }[];
  /** The requests of the server to this client. */
  readonly asked: string[];
  /** The client's answer to a server that asks for its roots. */
  readonly roots: { uri: string; name: string }[];
  readonly close: () => Promise<void>;
};

export type DriveOptions = {
  readonly generation: Generation;
  readonly transport: Transport;
  readonly url: string;
  readonly road: Road;
  /** How a client of the second generation finds out which revision the server speaks. */
  readonly negotiate?: 'auto' | { readonly pin: string };
  /** A session to go on with, instead of a new one. */
  readonly sessionId?: string;
  /** How long the client waits until it opens a lost stream again, in milliseconds (the newer transport). */
  readonly reconnectMs?: number;
};

/** Connects an official client that answers whatever a server may ask of it. */
export async function drive(options: DriveOptions): Promise<Driven> {
  const { road } = options;
  const open = options.generation === 'v1' ? openV1(options) : openV2(options);
  const { client, transport, connect, asked, roots } = open;
  const heard: Driven['heard'] = [];
  client.fallbackNotificationHandler = async ({ method, params }) => {
    heard.push({ method, ...(params ? { params } : {}) });
  };
  await connect();
  if (transport instanceof HttpV1 || transport instanceof HttpV2) await streamOpened(road);
  const close = async () => {
    if ((transport instanceof HttpV1 || transport instanceof HttpV2) && transport.sessionId) {
      await transport.terminateSession().catch(() => {});
    }
    await client.close();
  };
  return { client, transport, road, heard, asked, roots, close };
}

type Open = Pick<Driven, 'client' | 'transport' | 'asked' | 'roots'> & {
  readonly connect: () => Promise<void>;
};

const INFO = { name: 'driven', version: '1.0.0' };
const CAPABILITIES = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } };

const SAMPLED = {
  role: 'assistant' as const,
  model: 'sandbox-1',
  content: { type: 'text' as const, text: 'sampled' },
};
const ELICITED = { action: 'accept' as const, content: { name: 'Ada', interpretation: 'technical' } };

function openV1(options: DriveOptions): Open {
  const { transport: kind, url, road } = options;
  const asked: string[] = [];
  const roots = [{ uri: 'file:///first', name: 'first' }];
  const tasks = { requests: { sampling: { createMessage: {} } } };
  const client = new ClientV1(INFO, {
    capabilities: { ...CAPABILITIES, tasks },
    taskStore: new InMemoryTaskStore(),
  });
  client.setRequestHandler(CreateMessageRequestSchema, async ({ method, params }, { taskStore }) => {
    asked.push(method);
    if (!params.task || !taskStore) return SAMPLED;
    const task = await taskStore.createTask({ ttl: 60_000, pollInterval: 100 });
    await taskStore.storeTaskResult(task.taskId, 'completed', SAMPLED);
    return { task };
  });
  client.setRequestHandler(ElicitRequestSchema, ({ method, params }) => {
    asked.push(method);
    return params.mode === 'url' ? { action: 'accept' } : ELICITED;
  });
  client.setRequestHandler(ListRootsRequestSchema, ({ method }) => {
    asked.push(method);
    return { roots };
  });
  const { fetch } = road;
  const transport =
    kind === 'http'
      ? new HttpV1(new URL(url), { fetch, ...httpOptions(options) })
      : new SseV1(new URL(url), { fetch });
  // The SDK's own classes do not fit their type where optional properties are exact.
  return { client, transport, asked, roots, connect: () => client.connect(transport as TransportV1) };
}

function openV2(options: DriveOptions): Open {
  const { transport: kind, url, road, negotiate } = options;
  const asked: string[] = [];
  const roots = [{ uri: 'file:///first', name: 'first' }];
  const client = new ClientV2(INFO, {
    capabilities: CAPABILITIES,
    ...(negotiate ? { versionNegotiation: { mode: negotiate } } : {}),
  });
  client.setRequestHandler('sampling/createMessage', ({ method }) => {
    asked.push(method);
    return SAMPLED;
  });
  client.setRequestHandler('elicitation/create', ({ method, params }) => {
    asked.push(method);
    return params.mode === 'url' ? { action: 'accept' } : ELICITED;
  });
  client.setRequestHandler('roots/list', ({ method }) => {
    asked.push(method);
    return { roots };
  });
  const { fetch } = road;
  const transport =
    kind === 'http'
      ? new HttpV2(new URL(url), { fetch, ...httpOptions(options) })
      : new SseV2(new URL(url), { fetch });
  return { client, transport, asked, roots, connect: () => client.connect(transport) };
}

function httpOptions({ sessionId, reconnectMs = 300 }: DriveOptions) {
  const reconnectionOptions = {
    initialReconnectionDelay: reconnectMs,
    maxReconnectionDelay: reconnectMs,
    reconnectionDelayGrowFactor: 1,
    // On a busy machine a server may take long to see that the old stream has gone, and refuses another until then.
    maxRetries: 200,
  };
  return { reconnectionOptions, ...(sessionId ? { sessionId } : {}) };
}

/** Streamable HTTP: what a server says by itself comes on a stream that the client opens after it has connected. */
async function streamOpened({ exchanges }: Road): Promise<void> {
  const initialized = exchanges.some(({ method }) => method === 'notifications/initialized');
  if (!initialized) return;
  await eventually(async () => exchanges.find(({ verb, status }) => verb === 'GET' && status !== undefined));
}
