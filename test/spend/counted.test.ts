import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tokenCounter } from '@presign/providers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refOf, startSampler } from '../chaos/sample.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from './many-calls.ts';

/** A microdollar a token. */
const PRICE = { input: 1_000_000, output: 1_000_000 };
/** 10,000 words of English: 10,001 tokens, 51,000 bytes. */
const PROMPT = `${'the word of '.repeat(3_333)}end.`;
const OUTPUT = 300;

const ranks = createRequire(import.meta.url).resolve('gpt-tokenizer/data/o200k_base.tiktoken');
const count = tokenCounter('o200k_base', readFileSync(ranks));

let upstream: Upstream;
let stack: Stack;
/** The input that the provider reports. */
let reported: (body: { messages: readonly { content: string }[] }) => number;
let answers: Promise<void> = Promise.resolve();

beforeAll(async () => {
  upstream = await startUpstream(async (seen, response) => {
    const body = JSON.parse(seen.body.toString()) as { messages: { content: string }[] };
    await answers;
    const usage = { prompt_tokens: reported(body), completion_tokens: 10, total_tokens: reported(body) + 10 };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ choices: [{ index: 0, message: { content: 'x' }, finish_reason: 'stop' }], usage }),
    );
  });
  const pricing = { 'gpt-4o': PRICE, 'gpt-4.1': PRICE, 'gpt-6-sol': PRICE };
  const base_url = upstream.url;
  const proxy = { extends: 'openai', base_url, pricing };
  stack = await startStack({ gateways: 2, providers: { openai: { base_url, pricing }, proxy } });
  reported = exact;
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** As OpenAI counts a chat: 3 tokens for each message and 3 for the answer. */
const exact: typeof reported = ({ messages }) =>
  messages.reduce((sum, { content }) => sum + count(content) + 3, 3);

const body = (more: object = {}) => ({
  model: 'gpt-4o',
  messages: [{ role: 'user', content: PROMPT }],
  max_tokens: OUTPUT,
  ...more,
});
const issue = async (limits: object, provider = 'openai') =>
  (await stack.issue({ provider, path: '/v1/chat/completions', client_api_key: 'sk', ...limits })).url;
const errorOf = ({ bytes }: { bytes: Buffer }) =>
  (JSON.parse(bytes.toString()) as { error: { code: string; needed: number } }).error;

describe('a prompt whose bytes cost more than the limit, and whose tokens cost less', () => {
  test('passes, and is charged its usage', async () => {
    const url = await issue({ cost_limit: 12_000 });
    const { status } = await post(url, body());
    expect(status).toBe(200);
    await eventually(async () => (await statusOf(url)).held === 0 || undefined);
    expect((await statusOf(url)).spent).toBe(exact(body()) + 10);
  });

  test('keeps its output bound if the count leaves room for it', async () => {
    const url = await issue({ cost_limit: Buffer.byteLength(PROMPT) });
    const { status, headers } = await post(url, body({ max_tokens: 5_000 }));
    expect(status).toBe(200);
    expect(headers['x-presign-max-tokens']).toBeUndefined();
    const sent = JSON.parse(upstream.seen.at(-1)?.body.toString() ?? '') as { max_completion_tokens: number };
    expect(sent.max_completion_tokens).toBe(5_000);
  });

  test('has its output bound lowered if the count leaves less room', async () => {
    const url = await issue({ cost_limit: 12_000 });
    const { status, headers } = await post(url, body({ max_tokens: 5_000 }));
    expect(status).toBe(200);
    expect(Number(headers['x-presign-max-tokens'])).toBeGreaterThan(1_000);
    expect(Number(headers['x-presign-max-tokens'])).toBeLessThan(2_000);
  });

  test('passes when it is planned in a worker, with a config', async () => {
    const large = `${PROMPT} `.repeat(3);
    const url = await issue({ cost_limit: 35_000, config: { max_tokens: 400, temperature: 0 } });
    // White space costs nothing, and a worker plans a body with a megabyte of it.
    const call =
      JSON.stringify(body({ messages: [{ role: 'user', content: large }] })) + ' '.repeat(1_100_000);
    expect((await post(url, call)).status).toBe(200);
    const sent = JSON.parse(upstream.seen.at(-1)?.body.toString() ?? '') as { temperature: number };
    expect(sent.temperature).toBe(0);
  });

  test('is refused when its tokens also cost too much, with the amount that its tokens need', async () => {
    const answer = await post(await issue({ cost_limit: 10_000 }), body());
    expect(answer.status).toBe(402);
    expect(errorOf(answer).code).toBe('cost_limit_too_low');
    expect(errorOf(answer).needed).toBeLessThan(12_000);
  });

  test.each([
    ['of a model whose encoding is not published', 'openai', { model: 'gpt-6-sol' }],
    ['at a server that only speaks the API of OpenAI', 'proxy', {}],
    [
      'in the result of a tool',
      'openai',
      { messages: [{ role: 'tool', tool_call_id: 'c', content: PROMPT }] },
    ],
  ])('is held by its bytes %s', async (_, provider, more) => {
    const answer = await post(await issue({ cost_limit: 12_000 }, provider), body(more));
    expect(errorOf(answer).code).toBe('cost_limit_too_low');
    expect(errorOf(answer).needed).toBeGreaterThan(Buffer.byteLength(PROMPT) / 2);
  });
});

test('a call that fits by its bytes is held by its bytes', async () => {
  let release = () => {};
  answers = new Promise((resolve) => {
    release = resolve;
  });
  const url = await issue({ cost_limit: 1_000_000 });
  const answer = post(url, body());
  const { held } = await eventually(async () => {
    const status = await statusOf(url);
    return status.held > 0 ? status : undefined;
  });
  expect(held).toBeGreaterThan(Buffer.byteLength(PROMPT));
  release();
  expect((await answer).status).toBe(200);
});

test('200 counted calls over two gateways never put settled plus held money above the limit, and spend 98 % of it', async () => {
  const each = exact(body()) + 10;
  const limit = 100 * each;
  const url = await issue({ cost_limit: limit, max_uses: 1_000_000 });
  const sampler = startSampler(stack.redis, await refOf(stack.db, url));
  const urls = stack.gatewayUrls.map((to) => url.replace(stack.gatewayUrls[0] ?? '', to));
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      for (;;) {
        const { status } = await post(urls[i % 2] ?? '', body());
        if (status !== 429) return status;
      }
    }),
  );
  await sampler.stop();
  expect(sampler.samples.over).toBe(0);
  expect(new Set(outcomes)).toEqual(new Set([200, 402]));
  expect((await statusOf(url)).spent).toBeGreaterThanOrEqual(0.98 * limit);
});

test('usage above a count makes its model count by bytes again, and never puts the budget above its limit', async () => {
  const url = await issue({ cost_limit: 12_000 });
  reported = (call) => exact(call) + 1_000;
  const call = body({ model: 'gpt-4.1' });
  expect((await post(url, call)).status).toBe(200);
  reported = exact;
  const status = await eventually(async () => {
    const now = await statusOf(url);
    return now.held === 0 ? now : undefined;
  });
  expect(status.spent).toBeLessThanOrEqual(12_000);
  const next = await post(await issue({ cost_limit: 12_000 }), call);
  expect(errorOf(next).code).toBe('cost_limit_too_low');
  expect((await post(await issue({ cost_limit: 12_000 }), body())).status).toBe(200);
});
