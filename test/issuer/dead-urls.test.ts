import { keys } from '@presign/limits';
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
      both: { extends: ['openai', 'anthropic'], base_url, pricing },
      xai: { base_url },
      groq: { base_url },
      painter: { extends: 'xai', base_url, pricing: { ...pricing, p: { images: 20_000 } } },
      speaker: { extends: 'groq', base_url, pricing: { ...pricing, p: { characters: 20 } } },
      ranker: {
        extends: 'cohere',
        base_url,
        pricing: { ...pricing, p: { input: 0, rerank_searches: 2_000 } },
      },
    },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const limit = { cost_limit: 1_000_000 };
const ask = (fields: object) => send(stack, { body: { ...least, ...fields } });

const IMAGES = '/v1/images/generations';
const SPEECH = '/v1/audio/speech';
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
  ...['gpt-image-1.5', 'gpt-4o-mini'].map(
    (model) =>
      ['config.model', /no rate for images/, 'cost_unbounded', { path: IMAGES, config: { model } }] as const,
  ),
  ...['gpt-4o-mini-tts', 'gpt-4o-mini'].map(
    (model) =>
      [
        'config.model',
        /no rate for characters/,
        'cost_unbounded',
        { path: SPEECH, config: { model } },
      ] as const,
  ),
  ['config.model', /no rate for input tokens/, 'cost_unbounded', { config: { model: 'tts-1' } }],
  [
    'config.n',
    /more than 1 in a stream/,
    'cost_unbounded',
    { path: IMAGES, config: { model: 'gpt-image-1', n: 3, stream: true } },
  ],
  ['path', /no model of xai has a price for/, 'price_unknown', { provider: 'xai', path: IMAGES }],
  [
    'path',
    /no model of cohere has a price for/,
    'cost_unbounded',
    { provider: 'cohere', path: '/v2/rerank' },
  ],
  ['path', /no model of priced has a price for/, 'cost_unbounded', { provider: 'priced', path: SPEECH }],
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
  // Another path, a free one, keeps no URL whose config ends all calls that cost money.
  ...['/v1/messages/count_tokens', '/v1/messages/*'].map(
    (free) =>
      [
        'config.model',
        /price of claude-0 at anthropic is not known/,
        'price_unknown',
        { provider: 'anthropic', path: ['/v1/messages', free], config: { model: 'claude-0' } },
      ] as const,
  ),
  [
    'config.max_tokens',
    /whole number above 0/,
    'cost_unbounded',
    {
      provider: 'anthropic',
      path: ['/v1/messages', '/v1/messages/count_tokens'],
      config: { max_tokens: 'abc' },
    },
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

/** The models of endpoints of other kinds, and the fields that these need. */
const MODELS: Readonly<Record<string, string>> = {
  xai: 'grok-imagine-image',
  cohere: 'rerank-v3.5',
};
const REQUIRED: Readonly<Record<string, object>> = {
  [IMAGES]: { prompt: 'Hi' },
  [SPEECH]: { input: 'Hi', voice: 'alloy' },
  '/v2/rerank': { query: 'Hi', documents: ['Hi'] },
};

/** The code with which the gateway refuses a call on a URL, to whose budget a limit is added after it was issued. */
async function codeOfCall(fields: object): Promise<string | null> {
  const { url } = await issue(stack, fields);
  const { jti, prt } = claimsOf(stack, url);
  const [row] = await stack.db.select({ id: grants.budgetId }).from(grants).where(eq(grants.id, jti));
  // The seed has the budget as it was issued.
  await stack.redis.del(keys.seed(prt, jti));
  await stack.db
    .update(budgets)
    .set({ costLimitMicrousd: limit.cost_limit })
    .where(eq(budgets.id, row?.id ?? ''));
  const { provider = '', path = '' } = fields as { provider?: string; path?: string };
  const required = REQUIRED[path];
  const body = required ? { model: MODELS[provider] ?? 'model-x', ...required } : (BODIES[provider] ?? BODY);
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  return answer.headers.get('x-presign-code');
}

describe.each(DEAD)(
  'a URL that can never be used because of its %s (%s, %s)',
  (field, says, code, fields) => {
    test('is refused with a cost_limit, and issued without one', async () => {
      expect(refused(await ask({ ...fields, ...limit }), 'invalid_request', field)).toMatch(says);
      expect((await ask(fields)).status).toBe(200);
    });

    test('would refuse a call without any further features', async () => {
      expect(await codeOfCall(fields)).toBe(code);
    });
  },
);

describe('a URL that at least one call can use is issued with a cost_limit', () => {
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
    ['a free call of the second provider', { provider: 'both', path: '/v1/messages/count_tokens' }],
    [
      'a free call beside an endpoint without a bound',
      { provider: 'anthropic', path: ['/v1/messages/count_tokens', '/v1/complete'] },
    ],
    [
      'a free call of a model without a price',
      { provider: 'anthropic', path: '/v1/messages/count_tokens', config: { model: 'claude-0' } },
    ],
    ['images of an unnamed model', { path: IMAGES }],
    ['images in a stream of one', { path: IMAGES, config: { model: 'gpt-image-1', stream: true } }],
    ['speech of an unnamed model', { path: SPEECH }],
    ['speech by the character', { path: SPEECH, config: { model: 'tts-1' } }],
    [
      'Imagen of an unnamed model',
      { provider: 'google', path: ['/v1beta/models/x:predict', '/v1beta/models/*:predict'] },
    ],
    [
      'a model whose name in the price list is not that of its calls',
      { provider: 'fireworks', path: '/inference/v1/chat/completions' },
    ],
    ['images that the operator prices', { provider: 'painter', path: IMAGES }],
    ['speech that the bundled list prices', { provider: 'groq', path: `/openai${SPEECH}` }],
    ['speech that the operator prices', { provider: 'speaker', path: `/openai${SPEECH}` }],
    ['rerank that the operator prices', { provider: 'ranker', path: '/v2/rerank', config: { model: 'p' } }],
    ['rerank of an unnamed model', { provider: 'ranker', path: '/v2/rerank' }],
    ['null, which means omitted', { config: { max_tokens: null } }],
  ])('%s', async (_what, fields) => {
    const sent = await ask({ ...fields, ...limit });
    expect(sent.status, sent.text).toBe(200);
  });
});

/** The config of a URL whose sockets no holder could use, and the field at fault. */
const NO_SOCKET: readonly (readonly [
  path: string | readonly string[],
  field: string,
  says: RegExp,
  config: object,
])[] = [
  [
    '/v1/realtime',
    'tools',
    /session\.tools\[0\]: the API calls remote MCP servers/,
    { tools: [{ type: 'mcp' }] },
  ],
  ['/v1/realtime', 'tools', /session\.tools: is not a list/, { prompt: null, tools: 'f' }],
  ['/v1/realtime', 'voice', /session\.voice: the cost of this field is not known/, { voice: 'marin' }],
  ['/v1/realtime', 'a.b', /session\.a\.b: the cost of this field/, { 'a.b': 1 }],
  ['/v1/realtime', 'prompt', /stored prompt/, { instructions: 'x', prompt: { id: 'p' } }],
  ['/v1/realtime', 'type', /another kind of session/, { type: 'transcription' }],
  ['/v1/realtime', 'metadata', /session\.metadata: the cost of this field/, { metadata: { a: 'b' } }],
  ['/v1/realtime', 'audio', /session\.audio\.input: is null/, { audio: { input: null } }],
  [
    '/v1/realtime',
    'audio',
    /session\.audio\.input\.turn_detection\.type: is another kind/,
    { audio: { input: { turn_detection: { type: 'x' } } } },
  ],
  ['/v1/realtime', 'model', /is not the name of a model/, { model: '' }],
  ['/v1/realtime', 'model', /is not the name of a model/, { model: 5 }],
  [['/v1/realtime', '/v1/responses'], 'type', /no socket on \/v1\/realtime/, { type: 'transcription' }],
  ['/v1/responses', 'type', /is a field of the event/, { type: 'response.create' }],
  ['/v1/responses', 'stream_id', /is a field of the event/, { stream_id: null }],
  ['/v1/responses', 'generate', /is a field of the event/, { model: 'gpt-4.1', generate: false }],
  ['/v1/responses', 'background', /is not supported over a socket/, { background: true }],
  [['/v1/chat/completions', '/v1/responses'], 'background', /no socket on/, { background: true }],
  [['/v1/chat/completions', '/v1/*'], 'background', /no socket on \/v1\/\*/, { background: true }],
];

describe.each(NO_SOCKET)('sockets on %j whose config has %s (%s)', (path, field, says, config) => {
  const asked = { path, sockets: true };

  test('are refused with the field, whoever sets it', async () => {
    expect(refused(await ask({ ...asked, config }), 'invalid_request', `config.${field}`)).toMatch(says);
    const { id } = await createVirtualKey(stack, { config });
    const { client_api_key: _, ...others } = least;
    const body = { ...others, ...asked, virtual_key: id };
    expect(refused(await send(stack, { body }), 'invalid_request', 'virtual_key')).toMatch(says);
    const policy = { config };
    const made = await send(stack, {
      path: '/v1/api-keys',
      body: { name: 'k', scopes: ['presign'], policy },
    });
    const { key: apiKey } = JSON.parse(made.text) as { key: string };
    const sent = await send(stack, { apiKey, body: { ...least, ...asked } });
    expect(refused(sent, 'invalid_request', `config.${field}`)).toMatch(says);
  });
});

test.each<[string, object]>([
  ['a config of a session', { config: { max_tokens: 9, audio: { output: { voice: 'marin' } } } }],
  ['null in place of a model and of a field', { config: { model: null, prompt: null } }],
  [
    'a config that a socket of a pattern cannot have',
    { path: ['/v1/responses', '/v1/*'], config: { top_p: 1 } },
  ],
  ['the settings of a stream', { path: '/v1/responses', config: { stream: true, background: false } }],
  [
    'a config that the sockets of one path can have',
    { path: ['/v1/responses', '/v1/realtime'], config: { store: false } },
  ],
  [
    'a config that one of the sockets of a pattern can have',
    { path: ['/v1/chat/completions', '/v1/*'], config: { store: false } },
  ],
  ['a config of calls alone', { path: '/v1/responses', config: { background: true }, sockets: false }],
])('sockets are issued with %s', async (_what, fields) => {
  const sent = await ask({ path: '/v1/realtime', sockets: true, ...fields });
  expect(sent.status, sent.text).toBe(200);
});

test('the first path is named if all paths are unusable, and one usable path is enough', async () => {
  const path = ['/v1/audio/transcriptions', '/v1/audio/translations'];
  refused(await ask({ path, ...limit }), 'invalid_request', 'path[0]');
  refused(await ask({ path: [path[0]], ...limit }), 'invalid_request', 'path[0]');
  expect((await ask({ path: [...path, '/v1/chat/completions'], ...limit })).status).toBe(200);
});

test('a virtual key adds the limit, the config, or both', async () => {
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
