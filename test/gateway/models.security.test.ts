import { gzipSync } from 'node:zlib';
import { readPublicKeys, verifyToken } from '@presign/crypto';
import { keys } from '@presign/limits';
import { llmClaims } from '@presign/schema';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
beforeAll(async () => {
  providers = await startProviders();
  stack = await startStack({ providers: providers.file, gateways: 2 });
});
afterAll(async () => {
  await stack.close();
  await providers.close();
});
beforeEach(() => {
  providers.seen.length = 0;
});

const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const urlOf = async (ask: object) => (await stack.issue({ ...CHAT, models: ['small', 'tiny'], ...ask })).url;

const send = (url: string, body: string | Buffer, type = 'application/json') =>
  request(url, { method: 'POST', body, headers: { 'content-type': type } });

/** The status of a call and the field that its refusal names, or `sent` if the provider got it. */
async function outcome(url: string, body: object | string, type?: string) {
  const answer = await send(url, typeof body === 'string' ? body : JSON.stringify(body), type);
  const text = await answer.body.text();
  const code = answer.headers['x-presign-code'];
  if (code === undefined) return 'sent';
  expect(providers.seen).toHaveLength(0);
  expect(text).toContain(String(code));
  return code;
}

const first = (path: string) => path.replace(/\*/g, 'small');

test.each([
  ['OpenAI chat', {}, (model: string) => ['', { model, messages: [] }]],
  ['OpenAI responses', { path: '/v1/responses' }, (model: string) => ['', { model, input: 'hi' }]],
  [
    'Anthropic',
    { provider: 'anthropic', path: '/v1/messages' },
    (model: string) => ['', { model, messages: [] }],
  ],
  ['Cohere', { provider: 'cohere', path: '/v2/chat' }, (model: string) => ['', { model, messages: [] }]],
  [
    'Gemini',
    { provider: 'google', path: '/v1beta/models/*:generateContent' },
    (model: string) => [`/v1beta/models/${model}:generateContent`, { contents: [] }],
  ],
  [
    'Azure',
    { provider: 'azure-openai', path: '/openai/deployments/*/chat/completions' },
    (model: string) => [`/openai/deployments/${model}/chat/completions`, { messages: [] }],
  ],
] as const)(
  '%s: a call of an allowed model is sent, and a call of another model is not',
  async (_what, ask, call) => {
    const path = 'path' in ask && ask.path.includes('*') ? [first(ask.path), ask.path] : undefined;
    for (const spends of [{}, { cost_limit: 1_000_000 }]) {
      // No price of these models is known, so a spend limit refuses the allowed ones with another code.
      const allowed = 'cost_limit' in spends ? 'price_unknown' : 'sent';
      const url = await urlOf({ ...ask, ...(path && { path }) });
      const root = url.slice(0, url.indexOf('/', url.indexOf('/t/') + 3));
      const to = (model: string) => {
        const [at, body] = call(model);
        return [at === '' ? url : `${root}${String(at)}`, body as object] as const;
      };
      if (allowed === 'sent') expect(await outcome(...to('tiny'))).toBe('sent');
      providers.seen.length = 0;
      expect(await outcome(...to('large'))).toBe('model_not_allowed');
    }
  },
);

describe('a call without a readable model is refused', () => {
  test.each([
    ['no model', {}, 'model_not_allowed'],
    ['no body', '', 'model_not_allowed'],
    ['a list', { model: ['small'] }, 'model_not_allowed'],
    ['two models', '{"model":"small","model":"large"}', 'invalid_request'],
    ['another case of the name', '{"model":"small","Model":"large"}', 'invalid_request'],
    ['another case of a field that chooses', '{"model":"small","Models":["large"]}', 'invalid_request'],
    ['fallbacks', { model: 'small', fallbacks: ['large'] }, 'model_not_allowed'],
    ['a tool with a model', { model: 'small', tools: [{ type: 'x', model: 'large' }] }, 'model_not_allowed'],
    ['no JSON', 'model=small', 'invalid_json'],
  ])('%s', async (_what, body, code) => {
    expect(await outcome(await urlOf({}), body)).toBe(code);
  });

  test('a form, whose fields are not read', async () => {
    const form = '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nsmall\r\n--b--\r\n';
    const url = await urlOf({});
    expect(await outcome(url, form, 'multipart/form-data; boundary=b')).toBe('unsupported_media_type');
  });

  test('a model in the query', async () => {
    expect(await outcome(`${await urlOf({})}?model=large`, { model: 'small' })).toBe('model_not_allowed');
  });

  test('an endpoint that is not known', async () => {
    const url = await urlOf({ path: ['/v1/chat/completions', '/v1/*'] });
    const other = url.replace('/chat/completions', '/batches');
    expect(await outcome(other, { model: 'small' })).toBe('model_not_allowed');
  });

  test('a large body, which a worker reads', async () => {
    const messages = [{ role: 'user', content: 'x'.repeat(3_000_000) }];
    const url = await urlOf({});
    for (let i = 0; i < 3; i++)
      expect(await outcome(url, { messages, model: 'large' })).toBe('model_not_allowed');
    expect(await outcome(url, { messages, model: 'small' })).toBe('sent');
  });
});

test('a body is sent as it was read, whatever its coding and charset were', async () => {
  const url = await urlOf({});
  const headers = { 'content-type': 'application/json; charset=utf-7', 'content-encoding': 'gzip' };
  const body = gzipSync('{"model":"small"}');
  const answer = await request(url, { method: 'POST', body, headers });
  expect(answer.statusCode).toBe(200);
  await answer.body.dump();
  const [seen] = providers.seen;
  expect(String(seen?.body)).toBe('{"model":"small"}');
  expect(seen?.headers['content-encoding']).toBeUndefined();
  expect(seen?.headers['content-type']).toBe('application/json');
});

test('the refusal names the allowed models, and costs no use', async () => {
  const url = await urlOf({ max_uses: 1 });
  const answer = await send(url, '{"model":"large"}');
  expect(answer.statusCode).toBe(403);
  expect(await answer.body.json()).toMatchObject({
    error: { code: 'model_not_allowed', param: 'model', allowed: ['small', 'tiny'] },
  });
  expect(await outcome(url, { model: 'small' })).toBe('sent');
});

test('a config may choose one of the models, and then the holder cannot choose', async () => {
  const url = await urlOf({ config: { model: 'tiny' } });
  expect(await outcome(url, { model: 'large', models: ['large'] })).toBe('sent');
  expect(JSON.parse(String(providers.seen[0]?.body))).toEqual({ model: 'tiny' });
});

test('every gateway enforces the models, from a seed, from Redis and from Postgres', async () => {
  const at = (url: string, gateway: number) =>
    url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
  for (const isSeeded of [true, false]) {
    const url = await urlOf({});
    const token = /\/t\/([^/]+)/.exec(url)?.[1] ?? '';
    const verified = verifyToken(token, readPublicKeys(stack.keys.publicKeys));
    const { jti, prt } = llmClaims.parse(verified.ok && verified.claims);
    const seed = keys.seed(prt, jti);
    await eventually(async () => (await stack.redis.exists(seed)) === 1);
    if (!isSeeded) await stack.redis.del(seed);
    for (const gateway of [0, 1]) {
      expect(await outcome(at(url, gateway), { model: 'large' })).toBe('model_not_allowed');
      expect(await outcome(at(url, gateway), { model: 'small' })).toBe('sent');
      providers.seen.length = 0;
    }
    expect(await stack.redis.hget(keys.grant(prt, jti), 'doc')).toContain('"mdl":["small","tiny"]');
  }
});
