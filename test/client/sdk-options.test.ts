import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { createPresign, openaiOptions, type Presign } from '@presign/client';
import Groq from 'groq-sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { expectRealKeyAlone, REAL_KEY } from '../sdk/keys.ts';
import { GEMINI_PIECES, startGoogleUpstream } from '../sdk/upstreams/google.ts';
import type { PacedUpstream } from '../sdk/upstreams/paced.ts';
import { startSandboxUpstream } from '../sdk/upstreams/sandbox.ts';

let sandbox: PacedUpstream;
let groq: PacedUpstream;
let google: PacedUpstream;
let stack: Stack;
let presign: Presign;

beforeAll(async () => {
  [sandbox, groq, google] = await Promise.all([
    startSandboxUpstream(),
    startSandboxUpstream('/openai'),
    startGoogleUpstream(),
  ]);
  const at = ({ url }: PacedUpstream) => ({ base_url: url });
  stack = await startStack({
    providers: { openai: at(sandbox), anthropic: at(sandbox), groq: at(groq), google: at(google) },
  });
  presign = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
});
afterAll(async () => {
  await stack.close();
  for (const upstream of [sandbox, groq, google]) await upstream.close();
});

const issue = (provider: string, ...path: string[]) =>
  presign.presign({ provider, path, client_api_key: REAL_KEY });
const HELLO = { model: 'sandbox-1', messages: [{ role: 'user' as const, content: 'Hello' }] };
const BEARER = ['authorization', `Bearer ${REAL_KEY}`] as const;

test('the OpenAI SDK: chat, with a stream too, and responses', async () => {
  const client = (await issue('openai', '/v1/chat/completions', '/v1/responses')).openai(OpenAI, {
    maxRetries: 0,
  });
  const { choices } = await client.chat.completions.create(HELLO);
  expect(choices[0]?.message.content).toContain('You said: Hello');
  const pieces: string[] = [];
  for await (const chunk of await client.chat.completions.create({ ...HELLO, stream: true })) {
    pieces.push(chunk.choices[0]?.delta.content ?? '');
  }
  expect(pieces.join('')).toContain('You said: Hello');
  const { output_text } = await client.responses.create({ model: 'sandbox-1', input: 'Hello' });
  expect(output_text).toContain('You said: Hello');
  expectRealKeyAlone(sandbox.seen.at(-1), ...BEARER);
});

test("the OpenAI SDK with another provider that has the same API, and that provider's own SDK", async () => {
  const issued = await issue('groq', '/openai/v1/chat/completions');
  const { choices } = await new OpenAI(openaiOptions(issued)).chat.completions.create(HELLO);
  expect(choices[0]?.message.content).toContain('You said: Hello');
  // It adds the whole path: the base is where the token ends.
  const { baseURL, ...options } = openaiOptions(issued);
  const own = new Groq({ ...options, baseURL: baseURL.slice(0, baseURL.indexOf('/openai/')) });
  expect((await own.chat.completions.create(HELLO)).choices[0]?.message.content).toContain('Hello');
  expectRealKeyAlone(groq.seen.at(-1), ...BEARER);
});

test('the Anthropic SDK', async () => {
  const client = (await issue('anthropic', '/v1/messages')).anthropic(Anthropic, { maxRetries: 0 });
  const { content } = await client.messages.create({ ...HELLO, max_tokens: 256 });
  expect(content).toMatchObject([{ type: 'text', text: expect.stringContaining('You said: Hello') }]);
  expectRealKeyAlone(sandbox.seen.at(-1), 'x-api-key');
});

test('the Google SDK, with a stream too', async () => {
  const model = 'gemini-2.5-flash';
  const paths = ['generateContent', 'streamGenerateContent'].map(
    (method) => `/v1beta/models/${model}:${method}`,
  );
  const { models } = (await issue('google', ...paths)).google(GoogleGenAI, {
    httpOptions: { timeout: 60_000 },
  });
  expect((await models.generateContent({ model, contents: 'Hello' })).text).toBe(GEMINI_PIECES.join(''));
  const pieces: string[] = [];
  for await (const { text } of await models.generateContentStream({ model, contents: 'Hello' })) {
    pieces.push(text ?? '');
  }
  expect(pieces.join('')).toBe(GEMINI_PIECES.join(''));
  expectRealKeyAlone(google.seen.at(-1), 'x-goog-api-key');
});
