import { randomUUID } from 'node:crypto';
import { type KeyPolicy, microdollars, type Warning } from '@presign/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { addApiKey, ownAccount } from './accounts.ts';
import { refused, type Sent, send } from './ask.ts';

let upstream: Upstream;
let stack: Stack;

const PRICE = { input: 150_000, output: 600_000 };
const PRICING = {
  small: PRICE,
  large: { input: 5_000_000, output: 15_000_000 },
  vectors: { input: 20_000 },
  'command-r': PRICE,
};

beforeAll(async () => {
  upstream = await startUpstream(answerChat);
  const at = { base_url: upstream.url, pricing: PRICING };
  stack = await startStack({ providers: { openai: at, anthropic: at, google: at, cohere: at } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk' };
type Answer = { url: string; warnings?: Warning[] };
const read = ({ status, text }: Sent): Answer => {
  expect(status, text).toBe(200);
  return JSON.parse(text) as Answer;
};
const issue = async (fields: object, headers = {}): Promise<Answer> =>
  read(await send(stack, { body: { ...ask, ...fields }, headers }));

const chat = { messages: [{ role: 'user', content: 'Hi' }] };

describe('a cost_limit that no call can meet', () => {
  test.each([
    ['chat', { config: { model: 'small' } }, chat],
    ['chat, many choices', { config: { model: 'small', n: 4 } }, chat],
    ['responses', { path: '/v1/responses', config: { model: 'small' } }, { input: 'Hi' }],
    ['embeddings', { path: '/v1/embeddings', config: { model: 'vectors' } }, { input: 'Hi' }],
    ['messages', { provider: 'anthropic', path: '/v1/messages', config: { model: 'small' } }, chat],
    [
      'generateContent, by the path',
      { provider: 'google', path: '/v1beta/models/small:generateContent' },
      { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    ],
    ['cohere chat', { provider: 'cohere', path: '/v2/chat', config: { model: 'command-r' } }, chat],
    ['chat, any model', { config: { n: 4 } }, { ...chat, model: 'small' }],
    ['embeddings, any model', { path: '/v1/embeddings' }, { input: 'Hi', model: 'vectors' }],
    [
      'generateContent, any model',
      {
        provider: 'google',
        path: ['/v1beta/models/small:generateContent', '/v1beta/models/*:generateContent'],
      },
      { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
    ],
    ['a list of models', { models: ['large', 'small'] }, { ...chat, model: 'small' }],
    ['a list and a config', { models: ['large', 'small'], config: { model: 'large' } }, chat],
  ])('is issued with a warning that names the cheapest call: %s', async (_what, fields, body) => {
    const { warnings } = await issue({ ...fields, cost_limit: 0 });
    const [warning] = warnings ?? [];
    expect(warnings).toEqual([
      {
        code: 'cost_limit_too_low',
        param: 'cost_limit',
        message: expect.any(String),
        needed: expect.any(Number),
      },
    ]);
    const needed = warning?.needed ?? 0;
    expect(needed).toBeGreaterThan(0);
    expect(warning?.message).toContain(microdollars(needed));
    // One below is too little for a real call, and a warning never comes with a limit under which one passes.
    const short = await issue({ ...fields, cost_limit: needed - 1 });
    expect(short.warnings).toHaveLength(1);
    const call = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
    const answer = await fetch(short.url, call);
    expect([answer.status, await answer.text()]).toEqual([
      402,
      expect.stringContaining('cost_limit_too_low'),
    ]);
    const enough = await issue({ ...fields, cost_limit: 1_000_000 });
    expect(enough).not.toHaveProperty('warnings');
    expect((await fetch(enough.url, call)).status).not.toBe(402);
    expect(await issue({ ...fields, cost_limit: needed })).not.toHaveProperty('warnings');
  });

  test('of models without a price has a warning that says so', async () => {
    expect((await issue({ models: ['new-1', 'new-2'], cost_limit: 1_000_000 })).warnings).toEqual([
      {
        code: 'price_unknown',
        param: 'models',
        message: 'models: none of them has a price at openai, so under a cost_limit no call can pass.',
        needed: null,
      },
    ]);
    expect(await issue({ models: ['new-1', 'small'], cost_limit: 1_000_000 })).not.toHaveProperty('warnings');
  });

  test.each([
    [
      'a path is free',
      {
        cost_limit: 1,
        config: { model: 'small' },
        path: ['/v1/chat/completions', '/v1/models'],
        method: 'GET',
      },
    ],
    ['there is no limit', { config: { model: 'small' } }],
  ])('gets no warning if %s', async (_why, fields) => {
    expect(await issue(fields)).not.toHaveProperty('warnings');
  });

  test('has its warning in the answer to a repeated request, too', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = { config: { model: 'small' }, cost_limit: 5 };
    const first = await issue(body, headers);
    expect(first.warnings).toHaveLength(1);
    expect(await issue(body, headers)).toEqual(first);
  });

  test('is judged with the config of its virtual key', async () => {
    const made = await send(stack, {
      path: '/v1/virtual-keys',
      body: { name: 'small', provider: 'openai', key: 'sk', config: { model: 'small' } },
    });
    expect(made.status, made.text).toBeLessThan(300);
    const { id } = JSON.parse(made.text) as { id: string };
    expect(
      (await issue({ client_api_key: undefined, virtual_key: id, cost_limit: 5 })).warnings,
    ).toHaveLength(1);
  });

  test('is refused by a policy that requires this', async () => {
    const apiKey = await addApiKey(stack, await ownAccount(stack), {
      scopes: ['presign'],
      policy: { refuse_warnings: true } as KeyPolicy,
    });
    const of = (fields: object) =>
      send(stack, { apiKey, body: { ...ask, config: { model: 'small' }, ...fields } });
    expect(refused(await of({ cost_limit: 5 }), 'invalid_request', 'cost_limit')).toContain('5 microdollars');
    expect(
      refused(await of({ config: {}, models: ['new'], cost_limit: 5 }), 'invalid_request', 'models'),
    ).toContain('price');
    expect(read(await of({ cost_limit: 1_000_000 }))).not.toHaveProperty('warnings');
    const mcp = await send(stack, { apiKey, path: '/v2/mcp-presign', body: bundle(5) });
    expect(refused(mcp, 'invalid_request', 'cost_limit')).toContain('1000 microdollars');
  });

  test.each([
    [5, {}, 1_000],
    [999, {}, 1_000],
    [1_000, {}, undefined],
    [5, { pricing: { default: 1_000, tools: { cheap: 10 } } }, 10],
    [50, { pricing: { default: 0 } }, undefined],
    // The operator's price counts, which the issuer does not know.
    [5, { pricing: { tools: { run: 1_000 } } }, undefined],
  ])('of MCP servers: %i with %j needs %s', async (limit, server, needed) => {
    const sent = await send(stack, { path: '/v2/mcp-presign', body: bundle(limit, server) });
    expect(read(sent).warnings?.map((each) => each.needed)).toEqual(
      needed === undefined ? undefined : [needed],
    );
  });
});

const bundle = (cost_limit: number, server: object = {}) => ({
  servers: [{ name: 'docs', url: 'https://mcp.example.com/mcp', pricing: { default: 1_000 }, ...server }],
  cost_limit,
});
