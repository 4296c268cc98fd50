import { setTimeout as sleep } from 'node:timers/promises';
import Anthropic from '@anthropic-ai/sdk';
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
  stack = await startStack({ providers: { anthropic: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const MESSAGES = '/v1/messages';
const issue = (limits: object = {}) =>
  stack.issue({ provider: 'anthropic', path: MESSAGES, client_api_key: REAL_KEY, ...limits });
const clientOf = (url: string, path = MESSAGES) =>
  new Anthropic({ baseURL: url.replace(path, ''), apiKey: PLACEHOLDER_KEY });
const hello = {
  model: 'sandbox-1',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hello' }],
};

test('a message is parsed, and the provider gets only the real key', async () => {
  const { url } = await issue();
  const message = await clientOf(url).messages.create(hello);
  expect(message.content).toMatchObject([{ type: 'text', text: expect.stringContaining('You said: Hello') }]);
  expect(message.usage.output_tokens).toBeGreaterThan(0);
  const seen = upstream.seen.at(-1);
  expect([seen?.method, seen?.url]).toEqual(['POST', MESSAGES]);
  expectRealKeyAlone(seen, 'x-api-key');
  expect(seen?.headers.authorization).toBeUndefined();
});

test('a key sent as a bearer token is replaced too', async () => {
  const { url } = await issue();
  const client = new Anthropic({
    baseURL: url.replace(MESSAGES, ''),
    apiKey: null,
    authToken: PLACEHOLDER_KEY,
  });
  await client.messages.create(hello);
  expectRealKeyAlone(upstream.seen.at(-1), 'x-api-key');
  expect(upstream.seen.at(-1)?.headers.authorization).toBeUndefined();
});

test('a streamed message arrives event by event', async () => {
  const { url } = await issue();
  const pace = upstream.pace();
  const events = await takeInStep(await clientOf(url).messages.create({ ...hello, stream: true }), pace);
  const texts = events.map((event) =>
    event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '',
  );
  expect(texts.join('')).toContain('You said: Hello');
  expect([events[0]?.type, events.at(-1)?.type]).toEqual(['message_start', 'message_stop']);
  expect(upstream.seen.at(-1)?.url).toBe(MESSAGES);
  expectRealKeyAlone(upstream.seen.at(-1), 'x-api-key');
});

test('tokens are counted through a URL for that path', async () => {
  const path = '/v1/messages/count_tokens';
  const { url } = await issue({ path });
  const { model, messages } = hello;
  const { input_tokens } = await clientOf(url, path).messages.countTokens({ model, messages });
  expect(input_tokens).toBeGreaterThan(0);
  expect(upstream.seen.at(-1)?.url).toBe(path);
});

test('models can be listed through a URL for GET', async () => {
  const path = '/v1/models';
  const { url } = await issue({ path, method: 'GET' });
  const { data } = await clientOf(url, path).models.list();
  expect(data.map((model) => model.id)).toContain('sandbox-1');
  expect([upstream.seen.at(-1)?.method, upstream.seen.at(-1)?.url]).toEqual(['GET', path]);
});

test('no uses left raises a PermissionDeniedError that says so', async () => {
  const { url } = await issue({ max_uses: 1 });
  const client = clientOf(url);
  await client.messages.create(hello);
  const error = await client.messages.create(hello).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Anthropic.PermissionDeniedError);
  expect(error).toMatchObject({
    status: 403,
    type: 'permission_error',
    errorCode: 'uses_exhausted',
    apiMessage: 'uses_exhausted: This URL has no uses left (max_uses 1). Issue a new URL.',
    details: { limit_of: 'url', limit: 1, used: 1 },
    error: { type: 'error', error: { code: 'uses_exhausted' } },
  });
});

test('an expired URL raises a PermissionDeniedError that says so', async () => {
  const { url, expires_at } = await issue({ expires_in: 1 });
  await sleep(expires_at * 1000 - Date.now());
  const error = await clientOf(url)
    .messages.create(hello)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Anthropic.PermissionDeniedError);
  expect(error).toMatchObject({
    type: 'permission_error',
    apiMessage: 'token_expired: This URL has expired. Issue a new URL.',
  });
});

test('a call without a cost bound raises an UnprocessableEntityError under a cost limit', async () => {
  const { url } = await issue({ cost_limit: 1_000 });
  const error = await clientOf(url)
    .messages.create(hello)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Anthropic.UnprocessableEntityError);
  expect((error as Error).message).toMatch(/no spend limit can hold/);
});

test("the provider's own error arrives unchanged", async () => {
  const { url } = await issue();
  const error = await clientOf(url)
    .messages.create({ ...hello, model: 'no-such-model' })
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Anthropic.NotFoundError);
  expect(error).toMatchObject({ type: 'not_found_error' });
});
