import { setTimeout as sleep } from 'node:timers/promises';
import { Cohere, CohereClient, CohereClientV2, CohereError } from 'cohere-ai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { expectRealKeyAlone, PLACEHOLDER_KEY, REAL_KEY } from './keys.ts';
import { takeInStep } from './take-in-step.ts';
import { COHERE_PIECES, startCohereUpstream } from './upstreams/cohere.ts';
import type { PacedUpstream } from './upstreams/paced.ts';

let upstream: PacedUpstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startCohereUpstream();
  stack = await startStack({ providers: { cohere: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const CHAT = '/v2/chat';
const issue = (limits: object = {}) =>
  stack.issue({ provider: 'cohere', path: CHAT, client_api_key: REAL_KEY, ...limits });
const clientOf = (url: string) =>
  new CohereClientV2({ baseUrl: url.replace(CHAT, ''), token: PLACEHOLDER_KEY });
const hello = { model: 'command-a-03-2025', messages: [{ role: 'user' as const, content: 'Hello' }] };

test('a chat answer is parsed, and the provider gets only the real key', async () => {
  const { url } = await issue();
  const answer = await clientOf(url).chat(hello);
  expect(answer.message.content).toMatchObject([{ type: 'text', text: COHERE_PIECES.join('') }]);
  expect(answer.usage?.billedUnits?.outputTokens).toBe(6);
  const seen = upstream.seen.at(-1);
  expect([seen?.method, seen?.url]).toEqual(['POST', CHAT]);
  expectRealKeyAlone(seen, 'authorization', `Bearer ${REAL_KEY}`);
});

test('a streamed answer arrives event by event', async () => {
  const { url } = await issue();
  const pace = upstream.pace();
  const events = await takeInStep(await clientOf(url).chatStream(hello), pace);
  const texts = events.map((event) =>
    event.type === 'content-delta' ? (event.delta?.message?.content?.text ?? '') : '',
  );
  expect(texts.join('')).toBe(COHERE_PIECES.join(''));
  expect([events[0]?.type, events.at(-1)?.type]).toEqual(['message-start', 'message-end']);
  expect(upstream.seen.at(-1)?.url).toBe(CHAT);
  expectRealKeyAlone(upstream.seen.at(-1), 'authorization', `Bearer ${REAL_KEY}`);
});

test.each([{}, { cost_limit: 1_000_000 }])(
  'a streamed answer of v1 arrives line by line (limits %j)',
  async (limits) => {
    const path = '/v1/chat';
    const { url } = await stack.issue({ provider: 'cohere', path, client_api_key: REAL_KEY, ...limits });
    const client = new CohereClient({ baseUrl: url.replace(path, ''), token: PLACEHOLDER_KEY });
    const pace = upstream.pace();
    const stream = await client.chatStream({ model: 'command-r-08-2024', message: 'Hello', maxTokens: 100 });
    const events = await takeInStep(stream, pace);
    const texts = events.map((event) => (event.eventType === 'text-generation' ? event.text : ''));
    expect(texts.join('')).toBe(COHERE_PIECES.join(''));
    expect([events[0]?.eventType, events.at(-1)?.eventType]).toEqual(['stream-start', 'stream-end']);
    expectRealKeyAlone(upstream.seen.at(-1), 'authorization', `Bearer ${REAL_KEY}`);
  },
);

test('no uses left raises a ForbiddenError that says so', async () => {
  const { url } = await issue({ max_uses: 1 });
  const client = clientOf(url);
  await client.chat(hello);
  const error = await client.chat(hello).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Cohere.ForbiddenError);
  expect(error).toMatchObject({
    statusCode: 403,
    message: expect.stringContaining('This URL has no uses left (max_uses 1). Issue a new URL.'),
    body: { code: 'uses_exhausted', limit: 1 },
  });
});

test('an expired URL raises an UnauthorizedError that says so', async () => {
  const { url, expires_at } = await issue({ expires_in: 1 });
  await sleep(expires_at * 1000 - Date.now());
  const error = await clientOf(url)
    .chat(hello)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Cohere.UnauthorizedError);
  expect((error as Error).message).toContain('This URL has expired. Issue a new URL.');
});

test('a call without a cost bound raises an UnprocessableEntityError under a cost limit', async () => {
  const { url } = await issue({ cost_limit: 1_000 });
  const error = await clientOf(url)
    .chat({ ...hello, model: 'unpriced-model' })
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Cohere.UnprocessableEntityError);
  expect(error).toBeInstanceOf(CohereError);
  expect((error as Error).message).toContain('no spend limit can hold');
});
