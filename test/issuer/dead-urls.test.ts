import { budgets, grants } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf, issue, least, refused, send } from './ask.ts';
import { createVirtualKey } from './virtual-keys.ts';

let stack: Stack;
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
  const base_url = upstream.url;
  const pricing = { 'model-x': { input: 1_000_000, output: 1_000_000 } };
  stack = await startStack({
    providers: {
      ...{ openai: { base_url }, anthropic: { base_url }, google: { base_url }, cohere: { base_url } },
      'azure-openai': { base_url },
      priced: { extends: 'openai', base_url, pricing },
      unpriced: { extends: 'openai', base_url },
    },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const limit = { cost_limit: 1_000_000 };
const ask = (fields: object) => send(stack, { body: { ...least, ...fields } });

const GEMINI = '/v1beta/models/gemini-2.5-flash:generateContent';

/** URLs that no call could use under a spend limit: the field at fault, the message, and the code that a call gets. */
const DEAD: readonly (readonly [field: string, says: RegExp, code: string, ask: object])[] = [
  ['path', /endpoint has no known bound/, 'cost_unbounded', { path: '/v1/videos' }],
  ['path', /endpoint has no known bound/, 'cost_unbounded', { provider: 'priced', path: '/v2/chat' }],
  [
    'path',
    /price of gpt-0 at azure-openai is not known/,
    'price_unknown',
    { provider: 'azure-openai', path: '/openai/deployments/gpt-0/chat/completions' },
  ],
  ['config.model', /price of gpt-0 at openai is not known/, 'price_unknown', { config: { model: 'gpt-0' } }],
  ['config.model', /is not the name of a model/, 'cost_unbounded', { config: { model: 5 } }],
  ['config.model', /fees or kinds of output/, 'cost_unbounded', { config: { model: 'o3-deep-research' } }],
  [
    'config.model',
    /price of gpt-4o at priced is not known/,
    'price_unknown',
    { provider: 'priced', config: { model: 'gpt-4o' } },
  ],
  ['provider', /no model of unpriced has a price/, 'price_unknown', { provider: 'unpriced' }],
  ['config.max_tokens', /whole number above 0/, 'cost_unbounded', { config: { max_tokens: 'abc' } }],
  ['config.max_tokens', /whole number above 0/, 'cost_unbounded', { config: { max_tokens: 0.5 } }],
  ['config.n', /whole number from 1 to 128/, 'cost_unbounded', { config: { top_p: 1, n: '2' } }],
  ['config.stream', /neither true nor false/, 'cost_unbounded', { config: { stream: 'yes' } }],
  ['config.audit', /cost of this field is not known/, 'cost_unbounded', { config: { audit: true } }],
  [
    'config.size',
    /OpenAI publishes the cost of this model/,
    'cost_unbounded',
    { path: '/v1/images/generations', config: { model: 'gpt-image-2', size: 'auto' } },
  ],
  [
    'config.max_tokens',
    /whole number above 0/,
    'cost_unbounded',
    { provider: 'anthropic', path: '/v1/messages', config: { max_tokens: [1] } },
  ],
  [
    'config.n',
    /generationConfig.candidateCount is not a whole number/,
    'cost_unbounded',
    { provider: 'google', path: GEMINI, config: { n: 'two' } },
  ],
  [
    'config.max_tokens',
    /whole number above 0/,
    'cost_unbounded',
    { provider: 'cohere', path: '/v2/chat', config: { max_tokens: '5', p: 1 } },
  ],
];

/** The smallest call of each API, of a model with a price. */
const BODY = {
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'Hi' }],
};
const BODIES: Readonly<Record<string, object>> = {
  google: { contents: [{ parts: [{ text: 'Hi' }] }] },
  anthropic: { ...BODY, model: 'claude-haiku-4-5' },
  cohere: { ...BODY, model: 'command-a-03-2025' },
};

/** The code with which the gateway refuses a call on a URL, to whose budget a limit is added after it was issued. */
async function codeOfCall(fields: object): Promise<string | null> {
  const { url } = await issue(stack, fields);
  const [row] = await stack.db
    .select({ id: grants.budgetId })
    .from(grants)
    .where(eq(grants.id, claimsOf(stack, url).jti));
  await stack.db
    .update(budgets)
    .set({ costLimitMicrousd: limit.cost_limit })
    .where(eq(budgets.id, row?.id ?? ''));
  const body = BODIES[(fields as { provider?: string }).provider ?? ''] ?? BODY;
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return answer.headers.get('x-presign-code');
}

describe.each(DEAD)('a URL that is dead by its %s (%s, %s)', (field, says, code, fields) => {
  test('is refused with a cost_limit, and issued without one', async () => {
    expect(refused(await ask({ ...fields, ...limit }), 'invalid_request', field)).toMatch(says);
    expect((await ask(fields)).status).toBe(200);
  });

  test('would get a refusal for a call that needs nothing more', async () => {
    expect(await codeOfCall(fields)).toBe(code);
  });
});

describe('a URL that a call can use is issued with a cost_limit', () => {
  test.each<readonly [string, object]>([
    ['a pattern that reaches one endpoint with a bound', { path: ['/v1/chat/completions', '/*/chat/*'] }],
    ['a free call', { method: 'GET', path: '/v1/models' }],
    ['a free call among others', { method: 'GET', path: ['/v1/models', '/v1/models/*'] }],
    ['a free call of a provider without prices', { provider: 'unpriced', method: 'GET', path: '/v1/models' }],
    [
      'a config that fits one of two APIs',
      { path: ['/v1/chat/completions', '/v1/embeddings'], config: { n: 2 } },
    ],
    ['an object that a holder completes', { config: { response_format: { type: 'text' } } }],
    ['a setting that its API does not have', { path: '/v1/embeddings', config: { max_tokens: 'abc' } }],
    [
      'a tool whose maximum of uses the holder states',
      { path: '/v1/responses', config: { tools: [{ type: 'web_search' }] } },
    ],
    [
      'a size whose quality the holder states',
      { path: '/v1/images/generations', config: { model: 'gpt-image-2', size: '1024x1024' } },
    ],
    ['a model of the operator', { provider: 'priced', config: { model: 'model-x' } }],
    ['null, which means omitted', { config: { max_tokens: null } }],
  ])('%s', async (_what, fields) => {
    const sent = await ask({ ...fields, ...limit });
    expect(sent.status, sent.text).toBe(200);
  });
});

test('the first path is named if each of several is dead, and one that is not keeps the URL', async () => {
  const path = ['/v1/audio/transcriptions', '/v1/moderations'];
  refused(await ask({ path, ...limit }), 'invalid_request', 'path[0]');
  refused(await ask({ path: [path[0]], ...limit }), 'invalid_request', 'path[0]');
  expect((await ask({ path: [...path, '/v1/chat/completions'], ...limit })).status).toBe(200);
});

test('a virtual key brings the limit, the config, or both', async () => {
  const config = { model: 'gpt-4o', max_tokens: 'abc' };
  const spends = await createVirtualKey(stack, { budget: limit });
  const configures = await createVirtualKey(stack, { config });
  const both = await createVirtualKey(stack, { config, budget: limit });
  const ofKey = (virtual_key: string, more: object = {}) =>
    send(stack, { body: { provider: 'openai', path: least.path, virtual_key, ...more } });

  refused(await ofKey(spends.id, { config }), 'invalid_request', 'config.max_tokens');
  for (const [id, more] of [[configures.id, limit], [both.id]] as const) {
    expect(refused(await ofKey(id, more), 'invalid_request', 'virtual_key')).toContain(
      'max_tokens of its config: is not a whole number above 0',
    );
  }
  expect((await ofKey(configures.id)).status).toBe(200);
  expect((await ofKey(both.id, { config: { max_tokens: 5 } })).status).toBe(200);
});
