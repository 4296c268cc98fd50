import { describe, expect, test } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  type JsonObject,
  loadProviders,
  type Provider,
  pricedBound,
  pricingOf,
  spendOf,
} from '../../src/index.ts';

const NOW = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-21T12:00:00Z') };
const FACTS = { contextWindow: 1_000_000, maxOutput: 1_000, reasoning: false };
const PRICED = Object.fromEntries(
  [...BUILT_IN_PROVIDERS.keys()].map((id) => [
    id,
    { base_url: 'https://api.example', pricing: { 'claude-x': { input: 1_000_000, output: 1_000_000 } } },
  ]),
);
/** The built-in providers, each with an operator's price of `claude-x` that leaves out the cache. */
const priced = loadProviders(JSON.stringify(PRICED));

/** Bodies that ask for a cache write of an hour in each place where an API has one. */
const text = 'a'.repeat(300_000);
const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } };
const point = { cachePoint: { type: 'default', ttl: '1h' } };
const turn = (content: unknown) => ({ messages: [{ role: 'user', content }], max_tokens: 10 });
const ASKS: readonly JsonObject[] = [
  { ...turn(text), ...mark },
  turn([{ type: 'text', text, ...mark }]),
  { ...turn(text), system: [{ type: 'text', text: 'x', ...mark }] },
  { ...turn(text), tools: [{ name: 't', input_schema: {}, ...mark }] },
  { ...turn(text), tools: [{ type: 'function', function: { name: 't' }, ...mark }] },
  { messages: [{ role: 'user', content: [{ text }, point] }], inferenceConfig: { maxTokens: 10 } },
  { input: [{ role: 'user', content: [{ type: 'input_text', text, ...mark }] }], max_output_tokens: 10 },
];

/** Every endpoint on which a dialect has a bound, and a model that is written there. */
const ENDPOINTS = [...priced.values()].flatMap((provider) =>
  provider.routes.flatMap(({ path, dialect }) => {
    const filled = path.replace(/anthropic\.claude-\*/, 'anthropic.claude-x').replaceAll('*', 'claude-x');
    return dialect.spend ? [[provider.id, filled] as const] : [];
  }),
);

/** The usage of a call whose whole input was written for an hour, and what it may cost. */
const written = (tokens: number) => ({
  input_tokens: tokens,
  cache_write_tokens: tokens,
  cache_write_1h_tokens: tokens,
  output_tokens: 0,
});

function heldFor(provider: Provider, path: string, model: string, body: JsonObject) {
  const spend = spendOf(provider, path);
  const pricing = pricingOf(provider, model, NOW);
  if (!spend || !pricing) throw new Error(`${provider.id} ${path}`);
  const sent = spend.atStandardPrice?.({ ...body, model }) ?? { ...body, model };
  const bytes = Buffer.byteLength(JSON.stringify(sent));
  const judged = spend.bound(sent, { path, bytes, facts: FACTS });
  if ('unbounded' in judged) return undefined;
  const cost = pricedBound(provider, model, pricing, judged.bound);
  return 'unbounded' in cost
    ? undefined
    : { held: cost.fixedMicrousd, tokens: judged.bound.inputTokens, pricing };
}

describe('a cache write of an hour', () => {
  test.each(ENDPOINTS)('is covered by the hold at %s %s, or the call is refused', (id, path) => {
    const provider = priced.get(id);
    if (!provider) throw new Error(id);
    for (const body of ASKS) {
      const call = heldFor(provider, path, 'claude-x', body);
      if (!call) continue;
      expect(call.pricing.cost(written(call.tokens))).toBeLessThanOrEqual(call.held);
      if (provider.cacheWrites) expect(call.held).toBeGreaterThanOrEqual(2 * call.tokens);
    }
  });

  test('passes in the dialect of Anthropic at these vendors', () => {
    const [body = {}] = ASKS;
    const passing = ENDPOINTS.filter(([id, path]) => {
      const provider = priced.get(id);
      return provider && heldFor(provider, path, 'claude-x', body);
    });
    expect(passing).toEqual([
      ['anthropic', '/v1/messages'],
      ['deepseek', '/anthropic/v1/messages'],
      ['fireworks', '/inference/v1/messages'],
      ['openrouter', '/api/v1/messages'],
    ]);
  });

  // Claude Sonnet 4.5 costs $3 up to 200,000 tokens of input and $6 above.
  test.each([
    ['anthropic', 'claude-sonnet-4-5', '/v1/messages'],
    ['openrouter', 'anthropic/claude-sonnet-4.5', '/api/v1/messages'],
  ])('costs twice the input at %s, in each tier', (id, model, path) => {
    const provider = BUILT_IN_PROVIDERS.get(id);
    if (!provider) throw new Error(id);
    const pricing = pricingOf(provider, model, NOW);
    expect(pricing?.cost(written(4_000))).toBe(24_000);
    expect(pricing?.cost({ ...written(4_000), cache_write_1h_tokens: 0 })).toBe(15_000);
    expect(pricing?.cost(written(300_000))).toBe(3_600_000);
    for (const body of ASKS.slice(0, 4)) {
      const call = heldFor(provider, path, model, body);
      expect(call?.held).toBeGreaterThanOrEqual(3_600_000);
    }
  });

  const minutes = { cache_control: { type: 'ephemeral', ttl: '5m' } };
  const result = (more: object) => ({ type: 'tool_result', tool_use_id: 't', ...more });
  const SHORT: readonly JsonObject[] = [
    turn(text),
    { ...turn(text), cache_control: { type: 'ephemeral' } },
    turn([{ type: 'text', text, ...minutes }]),
    {
      ...turn(text),
      tools: [{ name: 't', input_schema: { properties: { ttl: { enum: ['1h'] } } }, ...minutes }],
    },
  ];
  const LONG = [
    ...ASKS.slice(0, 4),
    turn([result({ content: [{ type: 'text', text, ...mark }] })]),
    turn([{ type: 'text', text, cache_control: { type: 'ephemeral', ttl: 3_600 } }]),
    { ...turn(text), new_field: { cache_control: '1h' } },
  ];

  test.each([
    ['at Anthropic', {}, SHORT, 1.25],
    ['at Anthropic, for which a part may ask', {}, LONG, 2],
    ['at another server that speaks its API', { base_url: 'https://mine.example' }, [...SHORT, ...LONG], 2],
  ])('is held %s', (_, at, bodies, times) => {
    const pricing = { 'claude-x': { input: 1_000_000, output: 1_000_000 } };
    const own = { ...at, pricing, harmless_fields: ['new_field'] };
    const provider = loadProviders(JSON.stringify({ anthropic: own })).get('anthropic');
    for (const body of bodies) {
      const call = provider && heldFor(provider, '/v1/messages', 'claude-x', body);
      expect(call?.held, JSON.stringify(body).replaceAll(text, 'x')).toBe(
        Math.ceil(times * (call?.tokens ?? Number.NaN)),
      );
    }
  });

  test('leaves the dearest of the other rates to a call that does not ask for it, in each list', () => {
    for (const list of BUNDLED_PRICES.layers.flat()) {
      const prices = { id: list.id, layers: [[list]] };
      const { models } = list.providers.get('anthropic') ?? expect.unreachable();
      const anthropic = BUILT_IN_PROVIDERS.get('anthropic') ?? expect.unreachable();
      for (const { id } of models) {
        const pricing = pricingOf(anthropic, id, { ...NOW, prices });
        const { cache_write = 0, cache_write_1h = 0, input = 0 } = pricing?.rates ?? {};
        expect([id, pricing?.dearestShort ?? 0]).toEqual([id, Math.max(input, cache_write)]);
        expect([id, pricing?.dearestInput ?? 0]).toEqual([id, Math.max(input, cache_write, cache_write_1h)]);
      }
    }
  });

  test.each([
    ['bedrock', 'us.anthropic.claude-sonnet-4-5-20250929-v1:0', 6_600],
    ['bedrock', 'global.anthropic.claude-haiku-4-5-20251001-v1:0', 2_000],
  ])('costs twice the input at %s in the ledger of a URL without a limit: %s', (id, model, cost) => {
    const provider = BUILT_IN_PROVIDERS.get(id);
    expect(provider && pricingOf(provider, model, NOW)?.cost(written(1_000))).toBe(cost);
  });

  test.each([
    ['anthropic', 'claude-x', {}, 1_250, 2_000],
    ['vertex', 'claude-x', {}, 1_250, 2_000],
    ['openrouter', 'claude-x', { cache_write: 1_300_000 }, 1_300, 2_000],
    ['openrouter', 'claude-x', { cache_write: 3_000_000 }, 3_000, 3_000],
    ['openrouter', 'qwen-x', {}, 1_250, 1_250],
    ['anthropic', 'claude-x', { cache_write: 0, cache_write_1h: 1_500_000 }, 0, 1_500],
    ['deepseek', 'claude-x', {}, 1_000, 1_000],
    ['openai', 'claude-x', {}, 1_000, 1_000],
  ])("follows from an operator's input at %s for %s with %j", (id, model, more, short, hour) => {
    const price = { input: 1_000_000, output: 1_000_000, ...more };
    const provider = loadProviders(JSON.stringify({ [id]: { pricing: { [model]: price } } })).get(id);
    const pricing = provider && pricingOf(provider, model, NOW);
    expect(pricing?.cost({ ...written(1_000), cache_write_1h_tokens: 0 })).toBe(short);
    expect(pricing?.cost(written(1_000))).toBe(hour);
  });

  test.each([
    ['anthropic', 'openai'],
    ['openai', 'anthropic'],
    ['openai', 'openrouter', 'anthropic'],
  ])('holds for a server that extends %s and %s, in whatever order', (...names) => {
    const price = { input: 1_000_000, output: 1_000_000 };
    const acme = {
      extends: names,
      base_url: 'https://a.example',
      pricing: { 'claude-x': price, 'x-1': price },
    };
    const provider = loadProviders(JSON.stringify({ acme })).get('acme');
    const cost = (model: string) => provider && pricingOf(provider, model, NOW)?.cost(written(1_000));
    expect([cost('claude-x'), cost('x-1')]).toEqual([2_000, 1_000]);
  });
});
