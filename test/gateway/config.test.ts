import { gzipSync } from 'node:zlib';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { OK, type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
/** An OpenAI chat URL with a config. */
let chat: string;
/** The same without one. */
let plain: string;

const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };

beforeAll(async () => {
  providers = await startProviders();
  stack = await startStack({ providers: providers.file });
  chat = await urlOf({
    ...CHAT,
    config: { model: 'gpt-x', max_tokens: 7, metadata: { team: 'a', of: { unit: 'b' } } },
  });
  plain = await urlOf(CHAT);
});
afterAll(async () => {
  await own.destroy();
  await stack.close();
  await providers.close();
});
beforeEach(() => {
  providers.answer = OK;
  providers.seen.length = 0;
});

const urlOf = async (ask: object) => (await stack.issue(ask)).url;
/** A connection on which no other request waits while the gateway slowly reads a large body that it refused. */
const own = new Agent();
const send = (url: string, body: string | Buffer, headers: Record<string, string> = {}) =>
  request(url, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } });

/** Sends a body that must be refused and gives back how. */
async function refusal(body: string | Buffer, headers: Record<string, string> = {}, url = chat) {
  const answer = await send(url, body, headers);
  const { error } = (await answer.body.json()) as { error: { code: string; param: string | null } };
  expect(providers.seen).toHaveLength(0);
  return [answer.statusCode, error.code, error.param];
}

test.each([
  [
    'OpenAI chat',
    { ...CHAT, config: { model: 'gpt-x', max_tokens: 7, temperature: 0, stop: ['z'] } },
    {
      model: 'other',
      max_tokens: 99,
      max_completion_tokens: 98,
      messages: [{ role: 'user', content: 'hi' }],
    },
    {
      model: 'gpt-x',
      max_completion_tokens: 7,
      temperature: 0,
      stop: ['z'],
      messages: [{ role: 'user', content: 'hi' }],
    },
  ],
  [
    'OpenAI responses',
    { ...CHAT, path: '/v1/responses', config: { max_tokens: 7 } },
    { model: 'gpt-x', max_output_tokens: 99, input: 'hi' },
    { model: 'gpt-x', max_output_tokens: 7, input: 'hi' },
  ],
  [
    'Anthropic',
    {
      ...CHAT,
      provider: 'anthropic',
      path: '/v1/messages',
      config: { model: 'claude-x', max_completion_tokens: 7, stop: 'z' },
    },
    { model: 'other', max_tokens: 99, messages: [], stream: true },
    { model: 'claude-x', max_tokens: 7, stop_sequences: ['z'], messages: [], stream: true },
  ],
  [
    'Gemini',
    {
      ...CHAT,
      provider: 'google',
      path: '/v1beta/models/*:generateContent',
      config: { max_tokens: 7, temperature: 1 },
    },
    { contents: [], generation_config: { max_output_tokens: 99, topK: 3 } },
    { contents: [], generationConfig: { maxOutputTokens: 7, temperature: 1, topK: 3 } },
  ],
  [
    'Cohere',
    {
      ...CHAT,
      provider: 'cohere',
      path: '/v2/chat',
      config: { model: 'command-x', top_p: 0.5, max_tokens: 7 },
    },
    { model: 'other', p: 0.9, max_tokens: 99, messages: [] },
    { model: 'command-x', p: 0.5, max_tokens: 7, messages: [] },
  ],
])('%s: the config overrides the body', async (_what, ask, sent, arrived) => {
  // Gemini's URL cannot end in a pattern: its first path is one that can be called.
  const first = ask.path.includes('*') ? [ask.path.replace('*', 'any'), ask.path] : ask.path;
  const answer = await send(await urlOf({ ...ask, path: first }), JSON.stringify(sent));
  expect(answer.statusCode).toBe(200);
  expect(JSON.parse(String(providers.seen[0]?.body))).toEqual(arrived);
  expect(providers.seen[0]?.headers['content-length']).toBe(String(providers.seen[0]?.body.length));
});

test('a config writes its model into the path before the path is matched', async () => {
  const path = '/v1beta/models/gemini-mine:generateContent';
  const url = await urlOf({ ...CHAT, provider: 'google', path, config: { model: 'gemini-mine' } });
  for (const asked of ['gemini-mine', 'gemini-expensive', 'x%2e%2e']) {
    providers.seen.length = 0;
    const answer = await send(url.replace('gemini-mine', asked), '{"contents":[]}');
    expect([200, 403]).toContain(answer.statusCode);
    if (answer.statusCode === 200) expect(providers.seen[0]?.url).toBe(path);
  }
  providers.seen.length = 0;
  await send(
    url.replace('gemini-mine', 'gemini-expensive'),
    '{"contents":[],"model":"models/gemini-expensive"}',
  );
  expect(providers.seen[0]?.url).toBe(path);
  expect(JSON.parse(String(providers.seen[0]?.body))).toEqual({ contents: [], model: 'models/gemini-mine' });
});

test('a multipart form is 415 if a config or a cost_limit must act on it, and the message says so', async () => {
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  const form = '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n';
  for (const limit of [{ config: { model: 'm' } }, { cost_limit: 1_000 }]) {
    const url = await urlOf({ ...CHAT, ...limit });
    expect(await refusal(form, headers, url)).toEqual([415, 'unsupported_media_type', 'Content-Type']);
  }
});

test.each(['[]', '[{"model":"a"}]', '"text"', '1', 'null', 'true'])(
  'a body that is %s is not a JSON object: 415',
  async (body) => {
    expect(await refusal(body)).toEqual([415, 'unsupported_media_type', null]);
  },
);

test.each([
  ['nothing but space', ' '],
  ['half an object', '{"model":'],
  ['two objects', '{}{}'],
  ['a form', 'model=a'],
  ['a trailing comma', '{"a":1,}'],
  ['single quotes', "{'a':1}"],
  ['a comment', '{/**/}'],
  ['NaN', '{"a":NaN}'],
  ['a byte order mark', '\ufeff{}'],
  ['a bare control character', '{"a":"\n"}'],
  ['bytes that are not UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['UTF-16', Buffer.from('{"model":"a"}', 'utf16le')],
  ['a multipart form', '--x\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n--x--'],
])('a body of %s is invalid JSON: 400', async (_what, body) => {
  expect(await refusal(body)).toEqual([400, 'invalid_json', null]);
});

test.each([
  ['model', '{"model":"a","model":"b"}'],
  ['model', '{"model":"a","mod\\u0065l":"b"}'],
  ['messages[0].x', '{"messages":[{"x":1,"y":{},"x":2}]}'],
  ['a.b.c.x', '{"a":{"b":{"c":{"x":1,"x":1}}}}'],
  ['', '{"":1,"":2}'],
  ['__proto__', '{"__proto__":1,"__proto__":2}'],
  ['Model', '{"Model":"b"}'],
  ['MODEL', '{"model":"a","MODEL":"b"}'],
  ['Max_Tokens', '{"Max_Tokens":9}'],
  ['max_Completion_tokens', '{"max_Completion_tokens":9}'],
  ['Metadata', '{"Metadata":{}}'],
  ['metadata.Team', '{"metadata":{"Team":"b"}}'],
  ['metadata.of.Unit', '{"metadata":{"of":{"Unit":"c"}}}'],
])('a body with the ambiguous key %j is refused, and the error names the key', async (key, body) => {
  expect(await refusal(body)).toEqual([400, 'invalid_request', key]);
});

test('names chosen by the holder may have any case', async () => {
  const body = {
    messages: [{ role: 'user', content: '{"model":1,"model":2}' }],
    tools: [
      {
        type: 'function',
        function: { name: 'f', parameters: { properties: { Model: {}, MAX_TOKENS: {} } } },
      },
    ],
    metadata: { Other: { TEAM: 'x' } },
  };
  expect((await send(chat, JSON.stringify(body))).statusCode).toBe(200);
  expect(JSON.parse(String(providers.seen[0]?.body))).toMatchObject({
    tools: body.tools,
    messages: body.messages,
  });
});

test('the coding identity is not a compression', async () => {
  expect((await send(chat, '{}', { 'content-encoding': 'Identity' })).statusCode).toBe(200);
});

test.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'])(
  'a field named %s is an ordinary field',
  async (name) => {
    const body = `{"${name}":{"polluted":true,"isAdmin":true},"messages":[]}`;
    expect((await send(chat, body)).statusCode).toBe(200);
    expect('polluted' in {}).toBe(false);
    const text = String(providers.seen[0]?.body);
    expect(text).toContain(`"${name}":{"polluted":true,"isAdmin":true}`);
    expect(text).toContain('"model":"gpt-x"');
  },
);

test('a body nested too deeply is refused, and causes no internal error', async () => {
  const body = `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
  expect(await refusal(body)).toEqual([400, 'invalid_json', null]);
});

test('text is unchanged after parsing and writing: every plane, escapes, lone surrogates', async () => {
  const content = 'é € 😀 \u2028 \u0000 \ud800 "\\/';
  await send(chat, JSON.stringify({ content }));
  expect((JSON.parse(String(providers.seen[0]?.body)) as { content: string }).content).toBe(content);
});

test('a body of exactly 16 MiB passes, and one byte more is too large', async () => {
  const frame = '{"a":""}';
  const body = (bytes: number) => Buffer.from(`{"a":"${'x'.repeat(bytes - frame.length)}"}`);
  const limit = 16 * 1024 * 1024;
  expect((await send(chat, body(limit))).statusCode).toBe(200);
  providers.seen.length = 0;
  const tooLarge = { method: 'POST', body: body(limit + 1), dispatcher: own } as const;
  expect((await request(chat, tooLarge)).statusCode).toBe(413);
  expect(providers.seen).toHaveLength(0);
});

test('a body in chunks that grows too large gets 413 while it is still being sent', async () => {
  const socket = await openSocket(new URL(chat).origin);
  socket.on('error', () => {});
  let text = '';
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  socket.write(`POST ${new URL(chat).pathname} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n`);
  const block = Buffer.alloc(1024 * 1024, ' ');
  for (let sent = 0; sent < 80 && text === ''; sent++) {
    socket.write(`${block.length.toString(16)}\r\n`);
    socket.write(block);
    const room = socket.write('\r\n');
    if (!room) await new Promise((resolve) => socket.once('drain', resolve));
  }
  await new Promise<void>((resolve) => {
    if (text !== '') resolve();
    socket.once('data', () => resolve());
    socket.once('close', () => resolve());
  });
  expect(text).toMatch(/^HTTP\/1\.1 413 /);
  expect(text).toContain('"body_too_large"');
  socket.destroy();
  expect(providers.seen).toHaveLength(0);
});

test('a holder who disconnects while a body is read uses nothing', async () => {
  const url = await urlOf({ ...CHAT, max_uses: 1, config: { model: 'gpt-x' } });
  const socket = await openSocket(new URL(url).origin);
  socket.write(`POST ${new URL(url).pathname} HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\n\r\n{"half":`);
  // A later call has been answered, so this one's body is being read.
  expect((await send(plain, '{}')).statusCode).toBe(200);
  socket.destroy();
  const faults = stack.logs.filter((line) => line.includes('internal_error')).length;
  expect((await send(url, '{}')).statusCode).toBe(200);
  expect(faults).toBe(0);
});

test('without a config a body is not parsed: its bytes arrive unchanged', async () => {
  const bodies = [
    'not json',
    '{"model":"a","model":"b","Model":"c"}',
    '{"a": 1.0e2 , "big":12345678901234567890}',
    gzipSync('{"model":"a"}'),
    Buffer.from(Array.from({ length: 4096 }, (_, i) => i % 256)),
  ];
  for (const body of bodies) {
    providers.seen.length = 0;
    expect((await send(plain, body, { 'content-encoding': 'gzip' })).statusCode).toBe(200);
    expect(providers.seen[0]?.body).toEqual(Buffer.from(body));
    expect(providers.seen[0]?.headers['content-encoding']).toBe('gzip');
  }
});

test('a call without a body is sent without one', async () => {
  const answer = await request(chat, { method: 'POST' });
  expect(answer.statusCode).toBe(200);
  expect(providers.seen[0]?.body).toHaveLength(0);
});
