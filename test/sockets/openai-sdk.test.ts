import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { newCertificate, startTlsFront } from '../harness/tls.ts';
import { SPEECH, startRealtimeProvider } from './realtime-provider.ts';
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

test("the official SDK's socket completes turns, and shows why one is refused", async () => {
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

test("the official SDK's Realtime session speaks, is answered, and shows why a response is refused", async () => {
  const realtime = await startRealtimeProvider();
  const own = await startStack({ providers: { openai: { base_url: realtime.url } } });
  // The SDK opens no socket without TLS.
  const front = await startTlsFront(await newCertificate('localhost'), new URL(own.gatewayUrls[0] ?? ''));
  try {
    const { url } = await own.issue({ ...ASK, path: '/v1/realtime', max_uses: 2, cost_limit: 5_000_000 });
    const address = new URL(url.replace(/\/realtime$/, ''));
    Object.assign(address, { protocol: 'https:', port: front.port });
    const client = new OpenAI({ baseURL: address.href, apiKey: 'unused' });
    const options = { rejectUnauthorized: false };
    const session = new OpenAIRealtimeWS({ model: 'gpt-realtime', options }, client);
    const next = (name: 'session.updated' | 'response.done' | 'error') =>
      new Promise<{ readonly [name: string]: unknown }>((resolve) => {
        session.once(name as 'error', (event) => resolve(event as never));
      });
    const set = next('session.updated');
    await new Promise((resolve) => session.socket.on('open', resolve));
    await set;
    session.send({
      type: 'session.update',
      session: { type: 'realtime', audio: { input: { turn_detection: { type: 'semantic_vad' } } } },
    });
    for (const event of [
      { type: 'input_audio_buffer.append', audio: SPEECH } as const,
      { type: 'response.create', response: { output_modalities: ['text'] as ['text'] } } as const,
    ]) {
      const done = next('response.done');
      session.send(event);
      expect(await done).toMatchObject({ response: { status: 'completed' } });
    }
    const refused = next('error');
    session.send({ type: 'response.create' });
    expect(await refused).toMatchObject({
      error: { message: expect.stringContaining('uses_exhausted: This URL has no uses left (max_uses 2).') },
    });
    expect(realtime.sockets[0]?.request.headers.authorization).toBe('Bearer sk-real');
    expect(realtime.selfBegun).toBe(0);
    session.close();
  } finally {
    await front.close();
    await own.close();
    await realtime.close();
  }
});
