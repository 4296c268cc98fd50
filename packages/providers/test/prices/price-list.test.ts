import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import genaiPrices from '../../data/genai-prices.json' with { type: 'json' };
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  type Prices,
  pricingOf,
  readPriceList,
} from '../../src/index.ts';
import { LIST_MAX_BYTES } from '../../src/kept/listed.ts';
import { BUNDLED_LIST } from '../../src/prices/price-list.ts';

const vendor = (id: string) => BUILT_IN_PROVIDERS.get(id) ?? expect.unreachable(id);
const [OPENAI, DEEPSEEK] = [vendor('openai'), vendor('deepseek')];
const AT = Date.parse('2026-11-21T12:00:00Z');
const ORIGIN = { source: 'file', date: '2026-11-20' } as const;
const read = (list: unknown) => readPriceList(JSON.stringify(list), ORIGIN);
const only = (list: unknown): Prices => ({ id: JSON.stringify(list), layers: [[read(list)]] });

function priceIn(prices: Prices, provider: string, model: string) {
  const known = BUILT_IN_PROVIDERS.get(provider);
  return known && pricingOf(known, model, { prices, now: AT });
}

/** A list of genai-prices with one model of OpenAI. */
const genai = (prices: unknown, match: unknown = { equals: 'm' }, more: object = {}) => [
  { id: 'openai', models: [{ id: 'm', match, prices, ...more }] },
];

describe('a list of genai-prices', () => {
  test('prices models with tiers, in microdollars', () => {
    const tiers = { base: 1.25, tiers: [{ start: 200_000, price: 2.5 }] };
    const price = priceIn(only(genai({ input_mtok: tiers, output_mtok: 10 })), 'openai', 'm');
    expect(price?.cost({ input_tokens: 1_000, output_tokens: 10 })).toBe(1_350);
    expect(price?.cost({ input_tokens: 300_000, output_tokens: 0 })).toBe(750_000);
    expect(price).toMatchObject({ dearestInput: 2_500_000, dearestOutput: 10_000_000 });
    expect(price?.origin).toMatchObject({ source: 'file', date: '2026-11-20' });
  });

  test('prices by date', () => {
    const old = { input_mtok: 9, output_mtok: 9 };
    const current = { input_mtok: 1, output_mtok: 2 };
    const prices = [{ prices: old }, { constraint: { start_date: '2026-11-01' }, prices: current }];
    expect(priceIn(only(genai(prices)), 'openai', 'm')?.rates).toEqual({
      input: 1_000_000,
      output: 2_000_000,
    });
  });

  describe('prices by the hour', () => {
    const [low, peak] = [
      { input_mtok: 1, output_mtok: 2 },
      { input_mtok: 2, output_mtok: 4 },
    ];
    const constraint = { type: 'time_of_date', start_time: '13:00:00Z', end_time: '15:00:00Z' };
    const byHour = genai([{ prices: low }, { constraint, prices: peak }]);
    const costAt = (layer: readonly unknown[], hour: number) => {
      const prices = { id: JSON.stringify(layer), layers: [layer.map(read)] };
      const pricing = pricingOf(OPENAI, 'm', {
        prices,
        now: Date.parse('2026-11-21T00:00:00Z') + hour * 3_600_000,
      });
      return [pricing?.cost({ input_tokens: 1_000, output_tokens: 0 }), pricing?.dearestInput];
    };

    test.each([
      ['alone', [byHour], 1_000],
      ['beside their peak for the whole day', [byHour, genai(peak)], 1_000],
      ['beside themselves', [byHour, byHour], 1_000],
      ['not beside a dearer price', [byHour, genai({ input_mtok: 3, output_mtok: 4 })], 3_000],
      ['not beside a price between them', [byHour, genai({ input_mtok: 1.5, output_mtok: 4 })], 1_500],
      ['not beside one with another rate', [byHour, genai({ ...peak, cache_read_mtok: 0.1 })], 2_000],
    ] as const)('count %s', (_what, layer, cost) => {
      for (const each of [layer, layer.toReversed()]) {
        expect(costAt(each, 12)).toEqual([cost, Math.max(2_000_000, cost * 1_000)]);
        expect(costAt(each, 14)).toEqual([Math.max(2_000, cost), Math.max(2_000_000, cost * 1_000)]);
      }
    });

    test('of DeepSeek count in their hours', () => {
      const usage = { input_tokens: 10_000, cache_read_tokens: 8_000, output_tokens: 1_000 };
      const costs = ['12:00', '02:00'].map((time) => {
        const now = Date.parse(`2026-11-25T${time}:00Z`);
        return pricingOf(DEEPSEEK, 'deepseek-v4-pro', { prices: BUNDLED_PRICES, now })?.cost(usage);
      });
      expect(costs).toEqual([3_476, 6_952]);
    });
  });

  test('prices the models of the providers that it falls back to from the same list', () => {
    const list = [
      ...genai({ input_mtok: 7, output_mtok: 7 }),
      { id: 'azure', models: [], fallback_model_providers: ['openai'] },
    ];
    const azure = { id: 'azure', models: [{ id: 'x', match: { equals: 'x' }, prices: { input_mtok: 1 } }] };
    const withAzure = [
      ...genai({ input_mtok: 7, output_mtok: 7 }),
      { ...azure, fallback_model_providers: ['openai'] },
    ];
    expect(priceIn(only(withAzure), 'azure-openai', 'm')?.rates.input).toBe(7_000_000);
    expect(() => read(list)).not.toThrow();
  });

  test('keeps every model of the file that ships with Presign, in its order', () => {
    type Entry = { id: string; fallback_model_providers?: string[]; models: { id: string }[] };
    const files = new Map((genaiPrices.providers as Entry[]).map((each) => [each.id, each]));
    for (const [name, { models }] of BUNDLED_LIST.providers) {
      const { fallback_model_providers: others = [] } = files.get(name) ?? expect.unreachable(name);
      const inFile = [name, ...others].flatMap((each) => files.get(each)?.models ?? []);
      expect(models.map(({ id }) => id)).toEqual(inFile.map(({ id }) => id));
    }
  });

  test('prices characters by the million', () => {
    const price = priceIn(only(genai({ input_mchars: 15 })), 'openai', 'm');
    expect([price?.rates, price?.fees({ characters: 1_000 })]).toEqual([{ characters: 15 }, 15_000]);
    expect(price?.cost({ characters: 1_000 })).toBe(15_000);
    expect(price?.cost({ characters: 1, input_tokens: 1 })).toBeUndefined();
  });

  test.each([
    ['repeats a group', '^(a+)+$'],
    ['repeats two parts', '^a*a*b$'],
    ['refers back', '(a)\\1'],
    ['is malformed', '('],
  ])('leaves out a model whose expression %s', (_what, regex) => {
    const list = genai({ input_mtok: 1, output_mtok: 1 }, { or: [{ regex }, { equals: 'm' }] });
    expect(() => read(list)).toThrow('has no price of a known provider');
  });

  test.each([
    ['negative', { input_mtok: -1, output_mtok: -1 }],
    ['text', { input_mtok: '1', output_mtok: '1' }],
    ['null', { input_mtok: null, output_mtok: 1 }],
    ['tiers without a base', { input_mtok: { tiers: [] }, output_mtok: 1 }],
    [
      'of an unknown date',
      [{ constraint: { start_date: 'soon' }, prices: { input_mtok: 1, output_mtok: 1 } }],
    ],
    ['none', {}],
    ['a text under a date', [{ constraint: { start_date: '2026-01-01' }, prices: '$1' }]],
    ['tiers that are no list', { input_mtok: { base: 1, tiers: 'x' }, output_mtok: 1 }],
    ['tiers of no rates', { input_mtok: { base: 1, tiers: [7, null] }, output_mtok: 1 }],
    ['a list', { input_mtok: [1], output_mtok: 1 }],
  ])('has no price of a model whose rates are %s', (_what, prices) => {
    expect(priceIn(only(genai(prices)), 'openai', 'm')).toBeUndefined();
  });
});

describe("LiteLLM's list", () => {
  const openai = (rates: object, key = 'm') => ({
    sample_spec: { litellm_provider: 'one of', input_cost_per_token: 0, mode: 'one of: chat' },
    [key]: { litellm_provider: 'openai', mode: 'chat', ...rates },
  });

  test('prices tokens, tiers, caches and searches', () => {
    const list = openai({
      ...{ input_cost_per_token: 1.25e-6, input_cost_per_token_above_200k_tokens: 2.5e-6 },
      ...{ output_cost_per_token: 1e-5, cache_read_input_token_cost: 1.25e-7 },
      search_context_cost_per_query: { search_context_size_low: 0.01, search_context_size_high: 0.025 },
      ...{ max_input_tokens: 1_000, max_output_tokens: 500 },
    });
    const price = priceIn(only(list), 'openai', 'm');
    expect(price?.rates).toEqual({
      input: 2_500_000,
      cache_read: 125_000,
      output: 10_000_000,
      web_searches: 25_000,
    });
    expect(price?.cost({ input_tokens: 1_000, cache_read_tokens: 400, output_tokens: 10 })).toBe(
      750 + 50 + 100,
    );
    expect(price?.contextWindow).toBe(1_500);
  });

  test.each([
    ['gemini/gemini-9', 'gemini', 'google', 'gemini-9'],
    ['claude-9', 'anthropic', 'anthropic', 'claude-9'],
    ['azure/gpt-9', 'azure', 'azure-openai', 'gpt-9'],
    ['fireworks_ai/accounts/fireworks/models/x', 'fireworks_ai', 'fireworks', 'accounts/fireworks/models/x'],
    ['openrouter/openai/gpt-9', 'openrouter', 'openrouter', 'openai/gpt-9'],
    ['deepseek-chat', 'deepseek', 'deepseek', 'deepseek-chat'],
    ['together_ai/a/b', 'together_ai', 'together', 'a/b'],
    ['xai/grok-9', 'xai', 'xai', 'grok-9'],
  ])('%s is the model of a provider', (key, litellm_provider, provider, model) => {
    const list = { [key]: { litellm_provider, input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 } };
    expect(priceIn(only(list), provider, model)?.rates).toMatchObject({
      input: 1_000_000,
      output: 1_000_000,
    });
  });

  test.each([
    ['us.anthropic.claude-sonnet-4-6', 3_300_000],
    ['global.anthropic.claude-sonnet-4-6', 3_300_000],
    // The list has the price of the global endpoint for it, and it runs in one region.
    ['anthropic.claude-sonnet-4-6', undefined],
    ['us-gov.anthropic.claude-sonnet-5', undefined],
    ['amazon.nova-lite-v1:0', undefined],
  ])('of Bedrock prices %s at %s', (model, input) => {
    const list = only({
      [model]: {
        litellm_provider: 'bedrock_converse',
        input_cost_per_token: 3.3e-6,
        aliases: ['anthropic.claude-sonnet-4-6'],
      },
      ...openai({ input_cost_per_token: 1e-6 }),
    });
    expect(priceIn(list, 'bedrock', model)?.rates.input).toBe(input);
    expect(priceIn(list, 'bedrock', 'anthropic.claude-sonnet-4-6')).toBeUndefined();
  });

  test('has no price of Bedrock for one region', () => {
    const list = {
      'bedrock/us-gov-east-1/anthropic.claude-sonnet-4-6': {
        litellm_provider: 'bedrock',
        input_cost_per_token: 3.6e-6,
      },
      ...openai({ input_cost_per_token: 1e-6 }),
    };
    expect([
      ...only(list)
        .layers.flat()
        .flatMap(({ providers }) => [...providers.keys()]),
    ]).toEqual(['openai']);
  });

  test('finds a model by its other names', () => {
    const list = openai({
      input_cost_per_token: 1e-6,
      output_cost_per_token: 1e-6,
      aliases: ['m-2026-01-01'],
    });
    expect(priceIn(only(list), 'openai', 'm-2026-01-01')?.rates.input).toBe(1_000_000);
  });

  test('takes the dearer of two entries of one model', () => {
    const deepseek = (rate: number) => ({
      litellm_provider: 'deepseek',
      input_cost_per_token: rate,
      output_cost_per_token: rate,
    });
    for (const [first, second] of [
      [1e-6, 2e-6],
      [2e-6, 1e-6],
    ] as const) {
      const list = { 'deepseek/d': deepseek(first), d: deepseek(second) };
      expect(priceIn(only(list), 'deepseek', 'd')?.rates.input).toBe(2_000_000);
    }
  });

  test.each([
    ['a price of 0', { input_cost_per_token: 0, output_cost_per_token: 0 }],
    ['no price', {}],
    [
      'a price for each image, too',
      { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, input_cost_per_image: 0.01 },
    ],
    ['a price for each character', { input_cost_per_character: 1e-6 }],
    ['another mode', { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, mode: 'image_generation' }],
  ])('has no price of a model with %s', (_what, rates) => {
    const list = { ...openai(rates), other: { litellm_provider: 'openai', input_cost_per_token: 1e-6 } };
    expect(priceIn(only(list), 'openai', 'm')).toBeUndefined();
  });

  test('a rate of 0 is a missing one: it makes nothing free', () => {
    const list = openai({ input_cost_per_token: 1e-6, output_cost_per_token: 0 });
    const price = priceIn(only(list), 'openai', 'm');
    expect(price?.dearestOutput).toBeUndefined();
    expect(price?.cost({ input_tokens: 1, output_tokens: 1 })).toBeUndefined();
  });

  test('dollars become exact microdollars', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000_000 }), (rate) => {
        const list = openai({ input_cost_per_token: rate / 1e12, output_cost_per_token: rate / 1e12 });
        const price = priceIn(only(list), 'openai', 'm');
        expect(price?.rates.input).toBe(rate);
        expect(price?.cost({ input_tokens: 1_000_000, output_tokens: 0 })).toBe(rate);
      }),
      { numRuns: 200 },
    );
  });
});

test.each([
  ['no JSON', 'oops', 'is not a JSON list of models'],
  ['a number', '1', 'is not a JSON list of models'],
  ['nested too deeply', `${'['.repeat(1_000)}${']'.repeat(1_000)}`, 'is not a JSON list of models'],
  ['an empty list', '[]', 'has no price of a known provider'],
  ['a list of strangers', '[{"id": "acme", "models": []}]', 'has no price of a known provider'],
  ['anything else', '{"openai": {"pricing": {}}}', 'has no price of a known provider'],
])('a text that is %s is refused', (_what, text, problem) => {
  expect(() => readPriceList(text, ORIGIN)).toThrow(problem);
});

test('a text that is too large is refused', () => {
  expect(() => readPriceList(`"${'x'.repeat(LIST_MAX_BYTES)}"`, ORIGIN)).toThrow('is larger than');
});

test('too many models of one provider are refused', () => {
  const models = Array.from({ length: 3_001 }, (_, n) => ({
    id: `m${n}`,
    match: { equals: `m${n}` },
    prices: { input_mtok: 1 },
  }));
  expect(() => read([{ id: 'openai', models }])).toThrow('over 3000 models');
});

describe('a missing rate', () => {
  const above = (own: unknown, below: unknown): Prices => ({
    id: JSON.stringify([own, below]),
    layers: [[read(genai(own))], [read(genai(below))]],
  });

  test('is the dearest of its kind in the list, and nothing costs more than its hold', () => {
    const price = priceIn(only(genai({ input_mtok: 3, cache_write_mtok: 4, output_mtok: 5 })), 'openai', 'm');
    expect(price?.cost({ input_tokens: 1_000, cache_read_tokens: 1_000, output_tokens: 0 })).toBe(4_000);
    expect(price?.dearestInput).toBe(4_000_000);
  });

  test('is the one of the list below, where that has one', () => {
    const price = priceIn(
      above(
        { input_mtok: 1, output_mtok: 1 },
        { input_mtok: 1, output_mtok: 1, cache_write_mtok: 2, web_searches_kcount: 10 },
      ),
      'openai',
      'm',
    );
    expect(price?.cost({ input_tokens: 1_000, cache_write_tokens: 1_000, output_tokens: 0 })).toBe(2_000);
    expect(price?.dearestInput).toBe(2_000_000);
    expect(price?.fees({ web_searches: 2 })).toBe(20_000);
    expect(price?.cost({ input_tokens: 0, output_tokens: 0, web_searches: 2 })).toBe(20_000);
  });

  test('is never 0: a fee for each call that only the list below has is due', () => {
    const price = priceIn(
      above({ input_mtok: 1, output_mtok: 1 }, { input_mtok: 1, output_mtok: 1, requests_kcount: 5 }),
      'openai',
      'm',
    );
    expect(price?.fees({})).toBe(5_000);
    expect(price?.cost({ input_tokens: 0, output_tokens: 0 })).toBe(5_000);
  });

  const kind = fc.option(fc.integer({ min: 0, max: 50 }), { nil: undefined });
  const rates = fc
    .record({
      ...{ input_mtok: fc.integer({ min: 0, max: 50 }), output_mtok: fc.integer({ min: 0, max: 50 }) },
      ...{
        cache_read_mtok: kind,
        cache_write_mtok: kind,
        output_reasoning_mtok: kind,
        requests_kcount: kind,
      },
    })
    .map((record) => Object.fromEntries(Object.entries(record).filter(([, rate]) => rate !== undefined)));

  test('no usage costs more than its hold, or less than the own rates say, whatever two lists leave out', () => {
    fc.assert(
      fc.property(
        rates,
        rates,
        fc.nat(500),
        fc.nat(500),
        fc.nat(500),
        fc.nat(500),
        (own, below, a, b, c, d) => {
          const usage = {
            ...{ input_tokens: a + b + c, cache_read_tokens: a, cache_write_tokens: b },
            ...{ output_tokens: c + d, output_reasoning_tokens: c },
          };
          const price = priceIn(above(own, below), 'openai', 'm');
          const cost = price?.cost(usage) ?? Number.NaN;
          const hold =
            Math.ceil(((a + b + c) * (price?.dearestInput ?? 0)) / 1e6) +
            Math.ceil(((c + d) * (price?.dearestOutput ?? 0)) / 1e6) +
            (price?.fees({}) ?? 0);
          expect(cost).toBeLessThanOrEqual(hold);
          expect(cost).toBeGreaterThanOrEqual(priceIn(only(genai(own)), 'openai', 'm')?.fees({}) ?? 0);
        },
      ),
      { numRuns: 500 },
    );
  });
});
