import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type ResponsesProvider, startResponsesProvider } from './responses-provider.ts';

let provider: ResponsesProvider;
let stack: Stack;
beforeAll(async () => {
  provider = await startResponsesProvider();
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});
beforeEach(() => {
  provider.sockets.length = 0;
});

const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };

/** The socket of the official SDK, with the address of a URL as its base. */
async function sdkSocket(more: object): Promise<ResponsesWS> {
  const { url } = await stack.issue({ ...ASK, ...more });
  const client = new OpenAI({ baseURL: url.replace(/\/responses$/, ''), apiKey: 'unused' });
  return new ResponsesWS(client, undefined as never);
}

const CREATE = {
  type: 'response.create',
  model: 'gpt-4.1-mini',
  input: 'Hi.',
  max_output_tokens: 20,
} as const;

const seen = (socket: ResponsesWS, name: 'response.completed' | 'error') =>
  new Promise<{ readonly [name: string]: unknown }>((resolve) => {
    socket.on(name as 'error', (event) => resolve(event as never));
  });

test("the official SDK's socket has turns, and reads why one is refused", async () => {
  const socket = await sdkSocket({ max_uses: 1, cost_limit: 100_000 });
  const completed = seen(socket, 'response.completed');
  const refused = seen(socket, 'error');
  await new Promise((resolve) => socket.socket.on('open', resolve as never));
  socket.send(CREATE);
  expect(await completed).toMatchObject({ type: 'response.completed', response: { status: 'completed' } });
  expect(provider.sockets[0]?.request.headers.authorization).toBe('Bearer sk-real');
  socket.send(CREATE);
  expect(await refused).toMatchObject({
    message: expect.stringContaining('uses_exhausted: This URL has no uses left (max_uses 1).'),
  });
  socket.close();
});
