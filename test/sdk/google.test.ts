import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, GoogleGenAI } from '@google/genai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { expectRealKeyAlone, PLACEHOLDER_KEY, REAL_KEY } from './keys.ts';
import { takeInStep } from './take-in-step.ts';
import { GEMINI_PIECES, startGoogleUpstream } from './upstreams/google.ts';
import type { PacedUpstream } from './upstreams/paced.ts';

let upstream: PacedUpstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startGoogleUpstream();
  stack = await startStack({ providers: { google: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const GENERATE = '/v1beta/models/gemini-2.5-flash:generateContent';
const STREAM = '/v1beta/models/gemini-2.5-flash:streamGenerateContent';
const issue = (limits: object = {}) =>
  stack.issue({ provider: 'google', path: [GENERATE, STREAM], client_api_key: REAL_KEY, ...limits });
const clientOf = (url: string) =>
  new GoogleGenAI({
    apiKey: PLACEHOLDER_KEY,
    httpOptions: { baseUrl: url.slice(0, url.indexOf('/v1beta/')) },
  });
const hello = { model: 'gemini-2.5-flash', contents: 'Hello' };

test('generated content is parsed, and the provider gets only the real key', async () => {
  const { url } = await issue();
  const answer = await clientOf(url).models.generateContent(hello);
  expect(answer.text).toBe(GEMINI_PIECES.join(''));
  expect(answer.usageMetadata?.totalTokenCount).toBe(11);
  const seen = upstream.seen.at(-1);
  expect([seen?.method, seen?.url]).toEqual(['POST', GENERATE]);
  expectRealKeyAlone(seen, 'x-goog-api-key');
});

test('streamed content arrives chunk by chunk', async () => {
  const { url } = await issue();
  const pace = upstream.pace();
  const chunks = await takeInStep(await clientOf(url).models.generateContentStream(hello), pace);
  expect(chunks.map((chunk) => chunk.text)).toEqual(GEMINI_PIECES);
  expect(upstream.seen.at(-1)?.url).toBe(`${STREAM}?alt=sse`);
  expectRealKeyAlone(upstream.seen.at(-1), 'x-goog-api-key');
});

test('a pattern after the first path serves other models', async () => {
  const { url } = await issue({ path: [GENERATE, '/v1beta/models/*:countTokens'] });
  const { totalTokens } = await clientOf(url).models.countTokens({ ...hello, model: 'gemini-2.5-pro' });
  expect(totalTokens).toBe(5);
  expect(upstream.seen.at(-1)?.url).toBe('/v1beta/models/gemini-2.5-pro:countTokens');
});

test('config.model overrides the model that the SDK requests', async () => {
  const { url } = await issue({ path: GENERATE, config: { model: 'gemini-2.5-flash' } });
  await clientOf(url).models.generateContent({ ...hello, model: 'gemini-2.5-pro' });
  expect(upstream.seen.at(-1)?.url).toBe(GENERATE);
});

test('no uses left raises an ApiError 403 that says so', async () => {
  const { url } = await issue({ max_uses: 1 });
  const { models } = clientOf(url);
  await models.generateContent(hello);
  const error = await models.generateContent(hello).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    status: 403,
    message: expect.stringContaining('This URL has no uses left (max_uses 1). Issue a new URL.'),
  });
  const streamed = await models.generateContentStream(hello).catch((thrown: unknown) => thrown);
  expect(streamed).toBeInstanceOf(ApiError);
});

test('an expired URL raises an ApiError 401 that says so', async () => {
  const { url, expires_at } = await issue({ expires_in: 1 });
  await sleep(expires_at * 1000 - Date.now());
  const error = await clientOf(url)
    .models.generateContent(hello)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({
    status: 401,
    message: expect.stringContaining('This URL has expired. Issue a new URL.'),
  });
});

test('a forbidden model raises an ApiError 403 that names both paths', async () => {
  const { url } = await issue();
  const error = await clientOf(url)
    .models.generateContent({ ...hello, model: 'gemini-2.5-pro' })
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 403, message: expect.stringContaining(`allows ${GENERATE}`) });
  expect((error as Error).message).toContain('gemini-2.5-pro:generateContent');
});

test('a call without a cost bound raises an ApiError 422 under a cost limit', async () => {
  const paths = [GENERATE, '/v1beta/models/unpriced-model:generateContent'];
  const { url } = await issue({ path: paths, cost_limit: 1_000 });
  const error = await clientOf(url)
    .models.generateContent({ ...hello, model: 'unpriced-model' })
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 422, message: expect.stringContaining('no spend limit can hold') });
});
