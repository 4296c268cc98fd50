import Anthropic from '@anthropic-ai/sdk';
import { startSandboxLlm } from '@presign/local';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { statusOf } from './many-calls.ts';

type Sandbox = Awaited<ReturnType<typeof startSandboxLlm>>;
let sandbox: Sandbox;
let stack: Stack;

const CALLS = 200;
const pricing = { 'sandbox-1': { input: 150_000, output: 600_000 } };
/** What a call may answer holds 12,000 microdollars; what it does answer costs less than 50. */
const MAX_TOKENS = 20_000;
/** Room for one such hold, not for two. */
const LIMIT = 23_000;

beforeAll(async () => {
  sandbox = await startSandboxLlm();
  const entry = { base_url: sandbox.url, pricing };
  stack = await startStack({ gateways: 1, providers: { openai: entry, anthropic: entry } });
});
afterAll(async () => {
  await stack.close();
  await sandbox.close();
});

const issue = async (provider: string, path: string) =>
  (await stack.issue({ provider, path, client_api_key: 'sk-sandbox', cost_limit: LIMIT })).url;
const messages = [{ role: 'user' as const, content: 'Hi' }];
const ask = { model: 'sandbox-1', messages, max_tokens: MAX_TOKENS };

/** Makes calls one after another, none before the one before it has ended; fails at the first refusal. */
async function oneByOne(url: string, call: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < CALLS; i++) await call();
  const { used, spent, held } = await statusOf(url);
  expect({ used, held }).toEqual({ used: CALLS, held: 0 });
  expect(spent).toBeGreaterThan(CALLS);
  expect(spent).toBeLessThan(LIMIT - 12_000);
}

test.each([true, false])(
  'the OpenAI SDK, one call after another (streamed: %s), never meets its own hold',
  async (stream) => {
    const path = '/v1/chat/completions';
    const url = await issue('openai', path);
    const client = new OpenAI({ baseURL: url.replace('/chat/completions', ''), apiKey: 'x', maxRetries: 0 });
    await oneByOne(url, async () => {
      if (!stream) return client.chat.completions.create(ask);
      for await (const _ of await client.chat.completions.create({ ...ask, stream: true }));
      return undefined;
    });
  },
);

test.each([true, false])(
  'the Anthropic SDK, one call after another (streamed: %s), never meets its own hold',
  async (stream) => {
    const path = '/v1/messages';
    const url = await issue('anthropic', path);
    const client = new Anthropic({ baseURL: url.replace(path, ''), apiKey: 'x', maxRetries: 0 });
    await oneByOne(url, async () => {
      if (!stream) return client.messages.create(ask);
      return client.messages.stream(ask).finalMessage();
    });
  },
);

test('two calls at once do meet: the limit has room for one hold only', async () => {
  const url = await issue('openai', '/v1/chat/completions');
  const call = () =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(ask),
    });
  const answers = await Promise.all(Array.from({ length: 10 }, call));
  const held = answers.filter(({ status }) => status === 429);
  expect(held.length).toBeGreaterThan(0);
  const { error } = (await held[0]?.json()) as { error: { code: string } };
  expect([error.code, held[0]?.headers.get('retry-after')]).toEqual(['cost_held', '1']);
});
