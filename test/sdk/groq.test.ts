import { setTimeout as sleep } from 'node:timers/promises';
import Groq from 'groq-sdk';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { expectRealKeyAlone, PLACEHOLDER_KEY, REAL_KEY } from './keys.ts';
import { takeInStep } from './take-in-step.ts';
import type { PacedUpstream } from './upstreams/paced.ts';
import { startSandboxUpstream } from './upstreams/sandbox.ts';

let upstream: PacedUpstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startSandboxUpstream('/openai');
  stack = await startStack({ providers: { groq: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const CHAT = '/openai/v1/chat/completions';
const issue = (limits: object = {}) =>
  stack.issue({ provider: 'groq', path: CHAT, client_api_key: REAL_KEY, ...limits });
const clientOf = (url: string, path = CHAT) =>
  new Groq({ baseURL: url.replace(path, ''), apiKey: PLACEHOLDER_KEY });
const hello = { model: 'sandbox-1', messages: [{ role: 'user' as const, content: 'Hello' }] };

test('a chat completion is parsed, and the provider gets only the real key', async () => {
  const { url } = await issue();
  const answer = await clientOf(url).chat.completions.create(hello);
  expect(answer.choices[0]?.message.content).toContain('You said: Hello');
  const seen = upstream.seen.at(-1);
  expect([seen?.method, seen?.url]).toEqual(['POST', CHAT]);
  expectRealKeyAlone(seen, 'authorization', `Bearer ${REAL_KEY}`);
});

test('a streamed chat completion arrives chunk by chunk', async () => {
  const { url } = await issue();
  const pace = upstream.pace();
  const stream = await clientOf(url).chat.completions.create({ ...hello, stream: true });
  const chunks = await takeInStep(stream, pace);
  expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).toContain('You said: Hello');
  expect(upstream.seen.at(-1)?.url).toBe(CHAT);
  expectRealKeyAlone(upstream.seen.at(-1), 'authorization', `Bearer ${REAL_KEY}`);
});

test('models can be listed through a URL for GET', async () => {
  const path = '/openai/v1/models';
  const { url } = await issue({ path, method: 'GET' });
  const { data } = await clientOf(url, path).models.list();
  expect(data.map((model) => model.id)).toContain('sandbox-1');
  expect([upstream.seen.at(-1)?.method, upstream.seen.at(-1)?.url]).toEqual(['GET', path]);
});

test('no uses left raises a PermissionDeniedError that says so', async () => {
  const { url } = await issue({ max_uses: 1 });
  const client = clientOf(url);
  await client.chat.completions.create(hello);
  const error = await client.chat.completions.create(hello).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Groq.PermissionDeniedError);
  expect(error).toMatchObject({
    status: 403,
    message: expect.stringContaining('This URL has no uses left (max_uses 1). Issue a new URL.'),
    error: { error: { code: 'uses_exhausted' } },
  });
});

test('an expired URL raises an AuthenticationError that says so', async () => {
  const { url, expires_at } = await issue({ expires_in: 1 });
  await sleep(expires_at * 1000 - Date.now());
  const error = await clientOf(url)
    .chat.completions.create(hello)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Groq.AuthenticationError);
  expect((error as Error).message).toContain('This URL has expired. Issue a new URL.');
});

test('a call without a cost bound raises an UnprocessableEntityError under a cost limit', async () => {
  const { url } = await issue({ cost_limit: 1_000 });
  const error = await clientOf(url)
    .chat.completions.create(hello)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Groq.UnprocessableEntityError);
  expect((error as Error).message).toMatch(/no spend limit can hold/);
});
