import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SandboxLlm, startSandboxLlm } from '../src/sandbox/llm.ts';

let sandbox: SandboxLlm;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  sandbox = await startSandboxLlm();
  openai = new OpenAI({ baseURL: `${sandbox.url}/v1`, apiKey: 'sk-sandbox-test', maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: sandbox.url, apiKey: 'sk-sandbox-test', maxRetries: 0 });
});
afterAll(() => sandbox.close());

/** 12 bytes, so 3 tokens. */
const QUESTION = 'hello, world';
const ASKED = [{ role: 'user' as const, content: QUESTION }];
const REPLY = `This is the sandbox, no model was asked. You said: ${QUESTION}`;
const REPLY_TOKENS = Math.ceil(REPLY.length / 4);

async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test('a chat completion repeats the question, and its usage is one token for 4 bytes', async () => {
  const answer = await openai.chat.completions.create({ model: 'sandbox-1', messages: ASKED });
  expect(answer.choices[0]).toMatchObject({
    finish_reason: 'stop',
    message: { role: 'assistant', content: REPLY },
  });
  expect(answer.usage).toMatchObject({
    prompt_tokens: 3,
    completion_tokens: REPLY_TOKENS,
    total_tokens: 3 + REPLY_TOKENS,
  });
});

test('the chunks of a chat stream add up to the plain answer', async () => {
  const stream = await openai.chat.completions.create({ model: 'sandbox-1', messages: ASKED, stream: true });
  const chunks = await collect(stream);
  const deltas = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').filter(Boolean);
  expect(deltas.join('')).toBe(REPLY);
  expect(deltas.length).toBeGreaterThan(5);
  expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop');
  expect(chunks.every((chunk) => chunk.usage === undefined)).toBe(true);
});

test('include_usage adds a last chunk without choices and with the usage of the plain answer', async () => {
  const stream = await openai.chat.completions.create({
    model: 'sandbox-1',
    messages: ASKED,
    stream: true,
    stream_options: { include_usage: true },
  });
  const chunks = await collect(stream);
  expect(chunks.at(-1)).toMatchObject({
    choices: [],
    usage: { prompt_tokens: 3, completion_tokens: REPLY_TOKENS, total_tokens: 3 + REPLY_TOKENS },
  });
  expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
});

test('either maximum of a chat completion cuts the answer, and the answer says so', async () => {
  for (const maximum of [{ max_tokens: 2 }, { max_completion_tokens: 2 }]) {
    const answer = await openai.chat.completions.create({ model: 'sandbox-1', messages: ASKED, ...maximum });
    expect(answer.choices[0]).toMatchObject({
      finish_reason: 'length',
      message: { content: REPLY.slice(0, 8) },
    });
    expect(answer.usage?.completion_tokens).toBe(2);
  }
});

test('a cut never falls inside a character', async () => {
  const content = '💶'.repeat(50);
  for (let max_tokens = 13; max_tokens < 18; max_tokens += 1) {
    const answer = await openai.chat.completions.create({
      model: 'sandbox-1',
      messages: [{ role: 'user', content }],
      max_tokens,
    });
    expect(answer.choices[0]?.message.content).not.toContain('\ufffd');
    expect(answer.usage?.completion_tokens).toBeLessThanOrEqual(max_tokens);
  }
});

test('a response arrives plain or as a stream of events, with the same result', async () => {
  const request = { model: 'sandbox-1', input: QUESTION };
  const plain = await openai.responses.create(request);
  expect(plain).toMatchObject({ status: 'completed', output_text: REPLY });
  expect(plain.usage).toMatchObject({ input_tokens: 3, output_tokens: REPLY_TOKENS });
  const streamed = await openai.responses.stream(request).finalResponse();
  expect(streamed).toMatchObject({ status: 'completed', output_text: REPLY, usage: { ...plain.usage } });
});

test('a response that reaches its maximum is incomplete', async () => {
  const request = { model: 'sandbox-1', input: QUESTION, max_output_tokens: 2 };
  expect(await openai.responses.create(request)).toMatchObject({
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
    output_text: REPLY.slice(0, 8),
  });
  const events = await collect(await openai.responses.create({ ...request, stream: true }));
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
  expect(events.at(-1)).toMatchObject({
    type: 'response.incomplete',
    response: { usage: { output_tokens: 2 } },
  });
});

test('embeddings are the same for the same text, in both encodings', async () => {
  const ask = (encoding_format: 'float' | 'base64', input: string[]) =>
    openai.embeddings.create({ model: 'sandbox-1', input, encoding_format, dimensions: 4 });
  const floats = await ask('float', [QUESTION, 'other']);
  expect(floats.usage).toEqual({ prompt_tokens: 5, total_tokens: 5 });
  expect(floats.data[0]?.embedding).not.toEqual(floats.data[1]?.embedding);
  const encoded = String((await ask('base64', [QUESTION])).data[0]?.embedding);
  const bytes = new Uint8Array(Buffer.from(encoded, 'base64'));
  expect([...new Float32Array(bytes.buffer)]).toEqual(floats.data[0]?.embedding.map(Math.fround));
});

test('a message repeats the question, and its usage is one token for 4 bytes, including the system prompt', async () => {
  const answer = await anthropic.messages.create({
    model: 'sandbox-1',
    max_tokens: 500,
    system: 'be brief',
    messages: ASKED,
  });
  expect(answer).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: REPLY }] });
  expect(answer.usage).toMatchObject({ input_tokens: 5, output_tokens: REPLY_TOKENS });
});

test('a message stream adds up to the plain answer, its usage and its stop reason', async () => {
  const request = { model: 'sandbox-1', max_tokens: 4, messages: ASKED };
  const stream = anthropic.messages.stream(request);
  const kinds: string[] = [];
  stream.on('streamEvent', ({ type }) => kinds.push(type));
  const whole = await stream.finalMessage();
  const plain = await anthropic.messages.create(request);
  expect(whole).toMatchObject({ content: plain.content, stop_reason: 'max_tokens' });
  expect(whole.usage).toMatchObject({ input_tokens: 3, output_tokens: 4 });
  expect(plain.usage).toMatchObject({ input_tokens: 3, output_tokens: 4 });
  expect([kinds[0], ...kinds.slice(-3)]).toEqual([
    'message_start',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
});

test('the token count of a message is returned without an answer', async () => {
  const { input_tokens } = await anthropic.messages.countTokens({ model: 'sandbox-1', messages: ASKED });
  expect(input_tokens).toBe(3);
});

test('both SDKs list the models', async () => {
  const expected = ['sandbox-1', 'sandbox-mini', 'sandbox-pro', 'sandbox-overloaded'];
  expect((await collect(openai.models.list())).map(({ id }) => id)).toEqual(expected);
  expect((await collect(anthropic.models.list())).map(({ id }) => id)).toEqual(expected);
});

test('one model is always overloaded, with the error format of each provider', async () => {
  const asked = { model: 'sandbox-overloaded', messages: ASKED };
  await expect(openai.chat.completions.create(asked, { maxRetries: 0 })).rejects.toMatchObject({
    status: 503,
    type: 'server_error',
  });
  await expect(
    anthropic.messages.create({ ...asked, max_tokens: 5 }, { maxRetries: 0 }),
  ).rejects.toMatchObject({
    status: 503,
    error: { error: { type: 'overloaded_error' } },
  });
});

test('an unknown key, an unknown model and an invalid body are refused in the error format of each provider', async () => {
  const stranger = { apiKey: 'sk-other', maxRetries: 0 };
  await expect(
    new OpenAI({ ...stranger, baseURL: `${sandbox.url}/v1` }).chat.completions.create({
      model: 'sandbox-1',
      messages: ASKED,
    }),
  ).rejects.toMatchObject({ status: 401, code: 'invalid_api_key', type: 'invalid_request_error' });
  await expect(
    new Anthropic({ ...stranger, baseURL: sandbox.url }).messages.create({
      model: 'sandbox-1',
      max_tokens: 1,
      messages: ASKED,
    }),
  ).rejects.toMatchObject({ status: 401, error: { type: 'error', error: { type: 'authentication_error' } } });
  await expect(openai.chat.completions.create({ model: 'gpt-x', messages: ASKED })).rejects.toMatchObject({
    status: 404,
    code: 'model_not_found',
    param: 'model',
  });
  await expect(
    anthropic.messages.create({ model: 'x', max_tokens: 1, messages: ASKED }),
  ).rejects.toMatchObject({
    status: 404,
    error: { type: 'error', error: { type: 'not_found_error' } },
  });
  await expect(
    openai.chat.completions.create({ model: 'sandbox-1', messages: ASKED, max_tokens: 0 }),
  ).rejects.toMatchObject({ status: 400, param: 'max_tokens' });
});

test('a body that is not JSON is refused, and every POST is counted', async () => {
  const before = sandbox.calls();
  for (const path of ['chat/completions', 'messages']) {
    const answer = await fetch(`${sandbox.url}/v1/${path}`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-sandbox' },
      body: '{"model":',
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error' } });
  }
  expect(sandbox.calls()).toBe(before + 2);
});

test('an input that the window has no room for is refused in each dialect, and one that fills it passes', async () => {
  const fits = 'x'.repeat(4 * 128_000);
  const [model, long] = ['sandbox-1', `${fits}x`];
  const ask = (content: string) => [{ role: 'user' as const, content }];
  const exceeded = { status: 400, code: 'context_length_exceeded' };
  await expect(openai.chat.completions.create({ model, messages: ask(long) })).rejects.toMatchObject({
    ...exceeded,
    param: 'messages',
  });
  const filled = await openai.chat.completions.create({ model, messages: ask(fits) });
  expect(filled.usage?.prompt_tokens).toBe(128_000);
  const input = { ...exceeded, param: 'input' };
  await expect(openai.responses.create({ model, input: long })).rejects.toMatchObject(input);
  await expect(openai.embeddings.create({ model, input: long })).rejects.toMatchObject(input);
  const asked = { model, max_tokens: 1, messages: ask(long) };
  await expect(anthropic.messages.create(asked)).rejects.toMatchObject({
    status: 400,
    error: { error: { type: 'invalid_request_error' } },
  });
});
