import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { expectRealKeyAlone, PLACEHOLDER_KEY, REAL_KEY } from './keys.ts';
import { takeInStep } from './take-in-step.ts';
import type { PacedUpstream } from './upstreams/paced.ts';
import { startSandboxUpstream } from './upstreams/sandbox.ts';

let upstream: PacedUpstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startSandboxUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const CHAT = '/v1/chat/completions';
const issue = (limits: object = {}) =>
  stack.issue({ provider: 'openai', path: CHAT, client_api_key: REAL_KEY, ...limits });
const clientOf = (url: string, path = CHAT) =>
  new OpenAI({ baseURL: url.replace(path.replace('/v1', ''), ''), apiKey: PLACEHOLDER_KEY });
const hello = { model: 'sandbox-1', messages: [{ role: 'user' as const, content: 'Hello' }] };

test('a chat completion is parsed, and the provider gets only the real key', async () => {
  const { url } = await issue();
  const answer = await clientOf(url).chat.completions.create(hello);
  expect(answer.choices[0]?.message.content).toContain('You said: Hello');
  expect(answer.usage?.total_tokens).toBeGreaterThan(0);
  const seen = upstream.seen.at(-1);
  expect([seen?.method, seen?.url]).toEqual(['POST', CHAT]);
  expectRealKeyAlone(seen, 'authorization', `Bearer ${REAL_KEY}`);
});

test('a streamed chat completion arrives chunk by chunk', async () => {
  const { url } = await issue();
  const pace = upstream.pace();
  // Asked for, so that every event that the provider sends reaches the SDK.
  const usage = { stream_options: { include_usage: true } };
  const stream = await clientOf(url).chat.completions.create({ ...hello, ...usage, stream: true });
  const chunks = await takeInStep(stream, pace);
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toContain('You said: Hello');
  expect(upstream.seen.at(-1)?.url).toBe(CHAT);
  expectRealKeyAlone(upstream.seen.at(-1), 'authorization', `Bearer ${REAL_KEY}`);
});

test('a response is parsed, and streamed event by event', async () => {
  const path = '/v1/responses';
  const { url } = await issue({ path });
  const client = clientOf(url, path);
  const ask = { model: 'sandbox-1', input: 'Hello' };
  expect((await client.responses.create(ask)).output_text).toContain('You said: Hello');
  expect(upstream.seen.at(-1)?.url).toBe(path);

  const pace = upstream.pace();
  const events = await takeInStep(await client.responses.create({ ...ask, stream: true }), pace);
  const texts = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : ''));
  expect(texts.join('')).toContain('You said: Hello');
  expect(events.at(-1)?.type).toBe('response.completed');
  expectRealKeyAlone(upstream.seen.at(-1), 'authorization', `Bearer ${REAL_KEY}`);
});

test('embeddings arrive as numbers', async () => {
  const path = '/v1/embeddings';
  const { url } = await issue({ path });
  const answer = await clientOf(url, path).embeddings.create({ model: 'sandbox-1', input: ['one', 'two'] });
  expect(answer.data.map((each) => each.embedding.length)).toEqual([8, 8]);
  expect(Math.hypot(...(answer.data[0]?.embedding ?? []))).toBeCloseTo(1);
  expect(upstream.seen.at(-1)?.url).toBe(path);
});

test('models can be listed through a URL for GET', async () => {
  const path = '/v1/models';
  const { url } = await issue({ path, method: 'GET' });
  const { data } = await clientOf(url, path).models.list();
  expect(data.map((model) => model.id)).toContain('sandbox-1');
  expect([upstream.seen.at(-1)?.method, upstream.seen.at(-1)?.url]).toEqual(['GET', path]);
  expectRealKeyAlone(upstream.seen.at(-1), 'authorization', `Bearer ${REAL_KEY}`);
});

test('one URL with several paths serves them all', async () => {
  const { url } = await issue({ path: [CHAT, '/v1/embeddings'] });
  const client = clientOf(url);
  await client.chat.completions.create(hello);
  await client.embeddings.create({ model: 'sandbox-1', input: 'one' });
  expect(upstream.seen.slice(-2).map((seen) => seen.url)).toEqual([CHAT, '/v1/embeddings']);
});

test('no uses left raises a PermissionDeniedError that says so', async () => {
  const { url } = await issue({ max_uses: 1 });
  const client = clientOf(url);
  const { response } = await client.chat.completions.create(hello).withResponse();
  expect(response.headers.get('x-presign-uses-remaining')).toBe('0');
  const error = await client.chat.completions.create(hello).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError);
  expect(error).toMatchObject({
    status: 403,
    code: 'uses_exhausted',
    type: 'permission_error',
    message: '403 uses_exhausted: This URL has no uses left (max_uses 1). Issue a new URL.',
    requestID: expect.stringMatching(/./),
  });
});

test('an expired URL raises an AuthenticationError that says so', async () => {
  const { url, expires_at } = await issue({ expires_in: 1 });
  await sleep(expires_at * 1000 - Date.now());
  const error = await clientOf(url)
    .chat.completions.create(hello)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
  expect(error).toMatchObject({
    code: 'token_expired',
    message: '401 token_expired: This URL has expired. Issue a new URL.',
  });
});

test('a base URL with a doubled version raises a PermissionDeniedError that says what to remove', async () => {
  const { url } = await issue();
  const client = new OpenAI({
    baseURL: `${url.replace('/chat/completions', '')}/v1`,
    apiKey: PLACEHOLDER_KEY,
  });
  const error = await client.chat.completions.create(hello).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError);
  expect(error).toMatchObject({ code: 'path_not_allowed', message: expect.stringContaining('doubled') });
});

test('a call without a cost bound raises an UnprocessableEntityError under a cost limit', async () => {
  const { url } = await issue({ cost_limit: 1_000 });
  const error = await clientOf(url)
    .chat.completions.create(hello)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.UnprocessableEntityError);
  expect((error as Error).message).toMatch(/no spend limit can hold/);
});

test("the provider's own error arrives unchanged", async () => {
  const { url } = await issue();
  const error = await clientOf(url)
    .chat.completions.create({ ...hello, model: 'no-such-model' })
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OpenAI.NotFoundError);
  expect(error).toMatchObject({ code: 'model_not_found' });
});
