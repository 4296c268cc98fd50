import { once } from 'node:events';
import {
  type Http2Bindings,
  type HttpBindings,
  serve,
  upgradeWebSocket,
  type WebSocketServerLike,
} from '@hono/node-server';
import { type Context, Hono, type Next } from 'hono';
import { streamSSE } from 'hono/streaming';
import { WebSocketServer } from 'ws';
import { z } from 'zod';
import { chatCompletions, embeddings, openaiError, openaiModels } from './openai.ts';
import { RealtimeSession } from './realtime.ts';
import { answerRefusedUpgrade } from './refused-upgrade.ts';
import {
  Content,
  composeReply,
  countTokens,
  endpoint,
  SANDBOX_MODELS,
  SANDBOX_VOICE,
  type SandboxAnswer,
  type SandboxEvent,
  type SandboxRefusal,
  type SandboxReply,
  textOf,
  tooLong,
} from './reply.ts';
import { responses } from './responses.ts';
import { responsesSocket } from './responses-socket.ts';

export type SandboxLlm = {
  /** The origin, without a path. */
  url: string;
  /** How many POST requests and turns of sockets have arrived, the refused ones too. */
  calls(): number;
  close(): Promise<void>;
};

/**
 * Starts an LLM provider that needs no network and no account, for a first try and for tests. It speaks the
 * dialects of OpenAI (chat completions, responses, embeddings) and Anthropic (messages), streamed or not, responses and
 * Realtime over a WebSocket, and takes any key that begins with `sk-sandbox`.
 */
export async function startSandboxLlm({ host = '127.0.0.1', port = 0 } = {}): Promise<SandboxLlm> {
  let calls = 0;
  const app = createSandbox(() => {
    calls += 1;
    return `sandbox${calls}`;
  });
  const sockets = new WebSocketServer({ noServer: true });
  // The class of `ws` does not fit the type where optional properties are exact.
  const websocket = { server: sockets as WebSocketServerLike };
  const fetch = async (request: Request, env: HttpBindings | Http2Bindings) =>
    answerRefusedUpgrade(await app.fetch(request, env), env);
  const server = serve({ fetch, hostname: host, port, websocket });
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the sandbox listens on no port');
  return {
    url: `http://${host}:${address.port}`,
    calls: () => calls,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets.clients) socket.terminate();
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}

const KEY_PREFIX = 'sk-sandbox';
/** Long enough for each event to leave on its own, short enough not to be waited for. */
const PAUSE_BETWEEN_EVENTS_MS = 5;
const STATUS = {
  unauthenticated: 401,
  invalid: 400,
  unknown_model: 404,
  unknown_path: 404,
  overloaded: 503,
  unknown_response: 400,
  too_long: 400,
} as const;

type Endpoint = (body: unknown, id: string) => SandboxAnswer;

const endpoints = () =>
  ({
    '/v1/chat/completions': chatCompletions,
    '/v1/responses': responses(),
    '/v1/embeddings': embeddings,
    '/v1/messages': messages,
    '/v1/messages/count_tokens': countMessageTokens,
  }) satisfies Record<string, Endpoint>;

function createSandbox(nextId: () => string): Hono {
  const app = new Hono();
  app.get('/v1/models', (c) => {
    if (!hasKey(c)) return refuse(c, NO_KEY, 'models');
    return c.json(isAnthropic(c) ? anthropicModels() : openaiModels());
  });
  const all = endpoints();
  app.get(
    '/v1/responses',
    async (c, next) => (hasKey(c) ? next() : refuse(c, NO_KEY, nextId())),
    upgradeWebSocket(() => {
      const answer = (body: unknown) => all['/v1/responses'](body, nextId());
      const onMessage = responsesSocket(answer, ({ refused }) => STATUS[refused], PAUSE_BETWEEN_EVENTS_MS);
      return { onMessage: ({ data }, socket) => onMessage(data, socket) };
    }),
  );
  app.get(
    '/v1/realtime',
    async (c, next) => (hasKey(c) ? voiceOf(c, next, nextId) : refuse(c, NO_KEY, nextId())),
    upgradeWebSocket(() => {
      let session: RealtimeSession | undefined;
      return {
        onOpen: (_event, socket) => {
          session = new RealtimeSession(SANDBOX_VOICE.model, socket, nextId, PAUSE_BETWEEN_EVENTS_MS);
        },
        onMessage: ({ data }) => session?.take(data),
      };
    }),
  );
  for (const [path, answer] of Object.entries(all)) {
    app.post(path, async (c) => {
      const id = nextId();
      if (!hasKey(c)) return refuse(c, NO_KEY, id);
      const body = await c.req.json().catch(() => INVALID_JSON);
      return send(c, body === INVALID_JSON ? NOT_JSON : answer(body, id), id);
    });
  }
  app.all('*', (c) => {
    const message = `The sandbox has no ${c.req.method} ${c.req.path}`;
    return refuse(c, { refused: 'unknown_path', message }, nextId());
  });
  return app;
}

/** Refuses a session of another model. */
async function voiceOf(c: Context, next: Next, nextId: () => string): Promise<Response | undefined> {
  const model = c.req.query('model') ?? '';
  if (model === SANDBOX_VOICE.model) return void (await next());
  const message = `The model '${model}' does not exist: the sandbox speaks as ${SANDBOX_VOICE.model}`;
  return refuse(c, { refused: 'unknown_model', message, param: 'model' }, nextId());
}

const INVALID_JSON = Symbol('invalid JSON');
const NOT_JSON: SandboxRefusal = { refused: 'invalid', message: 'The body is not valid JSON' };
const NO_KEY: SandboxRefusal = {
  refused: 'unauthenticated',
  message: `The sandbox takes keys that begin with ${KEY_PREFIX}`,
};

function hasKey(c: Context): boolean {
  const bearer = c.req.header('authorization')?.replace(/^Bearer /i, '');
  return (c.req.header('x-api-key') ?? bearer ?? '').startsWith(KEY_PREFIX);
}

/** Both providers have /v1/models; Anthropic's API requires this header. */
function isAnthropic(c: Context): boolean {
  return c.req.path.startsWith('/v1/messages') || c.req.header('anthropic-version') !== undefined;
}

function send(c: Context, answer: SandboxAnswer, id: string): Response {
  if ('refused' in answer) return refuse(c, answer, id);
  return 'json' in answer ? c.json(answer.json) : stream(c, answer.events);
}

function refuse(c: Context, refusal: SandboxRefusal, id: string): Response {
  return c.json(isAnthropic(c) ? anthropicError(refusal, id) : openaiError(refusal), STATUS[refusal.refused]);
}

function stream(c: Context, events: SandboxEvent[]): Response {
  return streamSSE(c, async (out) => {
    for (const { event, data } of events) {
      if (out.aborted) return;
      const text = typeof data === 'string' ? data : JSON.stringify(data);
      await out.writeSSE(event === undefined ? { data: text } : { event, data: text });
      await out.sleep(PAUSE_BETWEEN_EVENTS_MS);
    }
  });
}

// The shapes of the Messages API (platform.claude.com/docs/en/api: messages, streaming, errors).

const Conversation = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ role: z.string(), content: Content })).min(1),
  system: Content,
});

/** POST /v1/messages */
const messages = endpoint(
  Conversation.extend({ max_tokens: z.int().min(1), stream: z.boolean().nullish() }),
  (body, id) => {
    const reply = composeReply(textsOf(body), body.max_tokens);
    const long = tooLong(reply.inputTokens, 'messages');
    if (long) return long;
    const message = { id: `msg_${id}`, type: 'message', role: 'assistant', model: body.model };
    if (body.stream) return { events: messageEvents(message, reply) };
    const content = [{ type: 'text', text: reply.text, citations: null }];
    return { json: { ...message, content, ...stopped(reply), usage: usageOf(reply, reply.outputTokens) } };
  },
);

/** POST /v1/messages/count_tokens */
const countMessageTokens = endpoint(Conversation, (body) => ({
  json: { input_tokens: countTokens(textsOf(body)) },
}));

/** GET /v1/models */
function anthropicModels(): object {
  const data = SANDBOX_MODELS.map((id) => ({
    type: 'model',
    id,
    display_name: id,
    created_at: '2025-01-01T00:00:00Z',
  }));
  return { data, has_more: false, first_id: data[0]?.id, last_id: data.at(-1)?.id };
}

function anthropicError({ refused, message }: SandboxRefusal, id: string): object {
  const type = {
    unauthenticated: 'authentication_error',
    invalid: 'invalid_request_error',
    unknown_model: 'not_found_error',
    unknown_path: 'not_found_error',
    overloaded: 'overloaded_error',
    unknown_response: 'not_found_error',
    too_long: 'invalid_request_error',
  }[refused];
  return { type: 'error', error: { type, message }, request_id: `req_${id}` };
}

function textsOf({ system, messages }: z.infer<typeof Conversation>): string[] {
  const said = messages.map(({ content }) => textOf(content));
  return system == null ? said : [textOf(system), ...said];
}

/** The input is counted in the first event, the output in the one before the last. */
function messageEvents(message: object, reply: SandboxReply): SandboxEvent[] {
  const start = { ...message, content: [], stop_reason: null, stop_sequence: null, usage: usageOf(reply, 1) };
  const sequence: { type: string; [field: string]: unknown }[] = [
    { type: 'message_start', message: start },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
    { type: 'ping' },
    ...reply.pieces.map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: stopped(reply), usage: { output_tokens: reply.outputTokens } },
    { type: 'message_stop' },
  ];
  return sequence.map((data) => ({ event: data.type, data }));
}

function stopped(reply: SandboxReply) {
  return { stop_reason: reply.isCut ? 'max_tokens' : 'end_turn', stop_sequence: null };
}

function usageOf({ inputTokens }: SandboxReply, outputTokens: number): object {
  return {
    input_tokens: inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
    service_tier: 'standard',
  };
}
