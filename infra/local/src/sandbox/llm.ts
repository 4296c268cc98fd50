import { once } from 'node:events';
import { serve } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { streamSSE } from 'hono/streaming';
import { anthropicError, anthropicModels, countMessageTokens, messages } from './anthropic.ts';
import { chatCompletions, embeddings, openaiError, openaiModels, responses } from './openai.ts';
import type { SandboxAnswer, SandboxEvent, SandboxRefusal } from './reply.ts';

export type SandboxLlm = {
  /** The origin, without a path. */
  url: string;
  /** How many POST requests have arrived, the refused ones too. */
  calls(): number;
  close(): Promise<void>;
};

/**
 * Starts an LLM provider that needs no network and no account, for a first try and for tests. It speaks the
 * dialects of OpenAI (chat completions, responses, embeddings) and Anthropic (messages), streamed or not, and
 * takes any key that begins with `sk-sandbox`.
 */
export async function startSandboxLlm({ host = '127.0.0.1', port = 0 } = {}): Promise<SandboxLlm> {
  let calls = 0;
  const app = createSandbox(() => {
    calls += 1;
    return `sandbox${calls}`;
  });
  const server = serve({ fetch: app.fetch, hostname: host, port });
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the sandbox listens on no port');
  return {
    url: `http://${host}:${address.port}`,
    calls: () => calls,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}

const KEY_PREFIX = 'sk-sandbox';
/** Long enough for each event to leave on its own, short enough not to be waited for. */
const PAUSE_BETWEEN_EVENTS_MS = 5;
const STATUS = { unauthenticated: 401, invalid: 400, unknown_model: 404, unknown_path: 404 } as const;

type Endpoint = (body: unknown, id: string) => SandboxAnswer;

const ENDPOINTS: Record<string, Endpoint> = {
  '/v1/chat/completions': chatCompletions,
  '/v1/responses': responses,
  '/v1/embeddings': embeddings,
  '/v1/messages': messages,
  '/v1/messages/count_tokens': countMessageTokens,
};

function createSandbox(nextId: () => string): Hono {
  const app = new Hono();
  app.get('/v1/models', (c) => {
    if (!hasKey(c)) return refuse(c, NO_KEY, 'models');
    return c.json(isAnthropic(c) ? anthropicModels() : openaiModels());
  });
  for (const [path, answer] of Object.entries(ENDPOINTS)) {
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
