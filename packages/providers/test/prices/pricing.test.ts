import { calcPrice } from '@pydantic/genai-prices';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  loadProviders,
  type Provider,
  pricingOf,
  tokensMicrousd,
} from '../../src/index.ts';
import { BUNDLED_LIST, BUNDLED_LITE_LLM } from '../../src/prices/price-list.ts';

const AT = Date.parse('2026-11-21T12:00:00Z');
const NOW = { prices: BUNDLED_PRICES, now: AT };
/** The first bundled list alone, which the library prices, too. */
const OF_ITS_LIST = { prices: { id: 'first', layers: [[BUNDLED_LIST]] }, now: AT };
const provider = (id: string): Provider => {
  const found = BUILT_IN_PROVIDERS.get(id);
  if (!found) throw new Error(id);
  return found;
};

test('float noise never rounds up: $0.000195 is 195 microdollars', () => {
  // 100 × $0.15 + 300 × $0.60 per million tokens.
  const usage = { input_tokens: 100, output_tokens: 300 };
  expect(calcPrice(usage, 'gpt-4o-mini', { providerId: 'openai' })?.total_price).toBeGreaterThan(0.000195);
  expect(pricingOf(provider('openai'), 'gpt-4o-mini', NOW)?.cost(usage)).toBe(195);
});

test.each([
  ['anthropic', 'claude-haiku-5-5'],
  ['anthropic', 'claude-opus-5-5'],
  ['anthropic', 'claude-sonnet-5-5'],
  ['openai', 'gpt-6.1-sol'],
  ['xai', 'grok-4.7'],
])('the newest models of %s that the newest lists have are priced: %s', (id, model) => {
  expect(pricingOf(provider(id), model, NOW)?.rates).toMatchObject({
    input: expect.any(Number),
    output: expect.any(Number),
  });
});

test('of two bundled lists that differ, the dearer rate counts', () => {
  const first = pricingOf(provider('xai'), 'grok-code-fast-1', OF_ITS_LIST)?.rates.input ?? 0;
  const second = { prices: { id: 'second', layers: [[BUNDLED_LITE_LLM]] }, now: AT };
  const dearer = pricingOf(provider('xai'), 'grok-code-fast-1', second)?.rates.input ?? 0;
  expect(dearer).toBeGreaterThan(first);
  expect(pricingOf(provider('xai'), 'grok-code-fast-1', NOW)?.rates.input).toBe(dearer);
});

test('a part of a microdollar is charged as a whole one', () => {
  expect(pricingOf(provider('openai'), 'gpt-4o-mini', NOW)?.cost({ input_tokens: 1, output_tokens: 0 })).toBe(
    1,
  );
  expect(pricingOf(provider('openai'), 'gpt-4o-mini', NOW)?.cost({ input_tokens: 7, output_tokens: 0 })).toBe(
    2,
  );
});

test('an unknown model and contradictory usage have no price', () => {
  expect(pricingOf(provider('openai'), 'no-such-model', NOW)).toBeUndefined();
  const pricing = pricingOf(provider('openai'), 'gpt-4o-mini', NOW);
  expect(pricing?.cost({ input_tokens: 1, cache_read_tokens: 5, output_tokens: 0 })).toBeUndefined();
});

test("the operator's prices go before the list's, and what they leave out costs as input", () => {
  const file = '{"openai": {"pricing": {"gpt-4o-mini": {"input": 1000000, "output": 2000000}}}}';
  const openai = loadProviders(file).get('openai');
  const pricing = openai && pricingOf(openai, 'gpt-4o-mini', NOW);
  expect(pricing?.cost({ input_tokens: 10, cache_read_tokens: 4, output_tokens: 5 })).toBe(20);
  expect(pricing?.fees({ web_searches: 1 })).toBeUndefined();
});

test.each(['acme', 'acme-openai', 'novita'])("an operator's provider named %s has no list prices", (id) => {
  const file = JSON.stringify({ [id]: { extends: 'openai', base_url: 'https://api.acme.example' } });
  const added = loadProviders(file).get(id);
  expect(added && pricingOf(added, 'gpt-4o-mini', NOW)).toBeUndefined();
  expect(added && pricingOf(added, 'gpt-oss-120b', NOW)).toBeUndefined();
});

/** The operator's price of model `m` at OpenAI. */
const operatorPrice = (price: Readonly<Record<string, number>>) => {
  const openai = loadProviders(JSON.stringify({ openai: { pricing: { m: price } } })).get('openai');
  const pricing = openai && pricingOf(openai, 'm', NOW);
  if (!pricing) throw new Error('no price');
  return pricing;
};

describe("an operator's price", () => {
  const rates = {
    ...{ input: 1_000_000, cache_read: 100_000, cache_write: 2_000_000, cache_write_1h: 3_000_000 },
    ...{ input_audio: 10_000_000, output: 4_000_000, output_reasoning: 5_000_000, output_citation: 500_000 },
    ...{ output_audio: 20_000_000, requests: 7, web_searches: 10_000 },
    ...{ input_image: 3_000_000, cache_audio_read: 200_000, output_video: 9_000_000 },
  };
  const { cost, fees, dearestInput, dearestOutput } = operatorPrice(rates);

  test.each<[string, Readonly<Record<string, number>>, number | undefined]>([
    [
      'each kind of cached input',
      { input_tokens: 30, cache_read_tokens: 10, cache_write_tokens: 10 },
      7 + 10 + 1 + 20,
    ],
    [
      'cache writes for an hour',
      { input_tokens: 10, cache_write_tokens: 10, cache_write_1h_tokens: 4 },
      7 + 12 + 12,
    ],
    ['sound that is read', { input_tokens: 10, input_audio_tokens: 4 }, 7 + 6 + 40],
    ['pictures that are read', { input_tokens: 10, input_image_tokens: 4 }, 7 + 6 + 12],
    ['more pictures than tokens', { input_tokens: 3, input_image_tokens: 4 }, undefined],
    [
      'cached sound, whose rate is no rate of cached text',
      { input_tokens: 9, cache_read_tokens: 1, cache_audio_read_tokens: 1 },
      undefined,
    ],
    ['video that is written', { output_tokens: 4, output_video_tokens: 1 }, 7 + 12 + 9],
    [
      'each kind of output',
      { output_tokens: 10, output_reasoning_tokens: 2, output_audio_tokens: 3 },
      7 + 20 + 10 + 60,
    ],
    ['citations', { output_tokens: 4, output_citation_tokens: 2 }, 7 + 8 + 1],
    ['searches', { input_tokens: 1, output_tokens: 1, web_searches: 3 }, 7 + 1 + 4 + 30_000],
    ['a unit without a rate', { input_tokens: 1, storage_searches: 1 }, undefined],
    ['an unknown unit', { input_tokens: 1, toString: 1 }, undefined],
    ['more kinds than tokens', { input_tokens: 1, cache_read_tokens: 2 }, undefined],
    [
      'sound and cache, which may overlap',
      { input_tokens: 9, cache_read_tokens: 1, input_audio_tokens: 1 },
      undefined,
    ],
  ])('prices %s', (_what, usage, expected) => {
    expect(cost(usage)).toBe(expected);
  });

  test('holds the dearest kind, and the fee for the call', () => {
    expect([dearestInput, dearestOutput]).toEqual([10_000_000, 20_000_000]);
    expect([fees({}), fees({ web_searches: 2 }), fees({ storage_searches: 1 })]).toEqual([
      7,
      20_007,
      undefined,
    ]);
  });

  test('covers no tokens that it has no rate for', () => {
    const searches = operatorPrice({ rerank_searches: 2_000 });
    expect([searches.dearestInput, searches.dearestOutput]).toEqual([undefined, undefined]);
    expect(searches.cost({ rerank_searches: 3 })).toBe(6_000);
    expect(searches.cost({ input_tokens: 1 })).toBeUndefined();
  });
});

/** Every priced model of every built-in provider. */
const models = [...BUILT_IN_PROVIDERS.values()].flatMap((each) =>
  (BUNDLED_LIST.providers.get(each.priceList ?? '')?.models ?? []).map(({ id }) => ({ provider: each, id })),
);

describe(`over all ${models.length} listed models`, () => {
  const anyModel = fc.constantFrom(...models);
  const share = fc.double({ min: 0, max: 1, noNaN: true });

  test('no usage within the bound costs more than its hold', () => {
    fc.assert(
      fc.property(
        anyModel,
        fc.integer({ min: 0, max: 2_000_000 }),
        fc.integer({ min: 0, max: 200_000 }),
        share,
        share,
        share,
        (model, input, output, read, write, thought) => {
          const pricing = pricingOf(model.provider, model.id, NOW);
          if (!pricing) return;
          const cacheRead = Math.floor(input * read);
          const usage = {
            input_tokens: input,
            cache_read_tokens: cacheRead,
            cache_write_tokens: Math.floor((input - cacheRead) * write),
            output_tokens: output,
            output_reasoning_tokens: Math.floor(output * thought),
          };
          const cost = pricing.cost(usage) ?? 0;
          const hold =
            tokensMicrousd(input, pricing.dearestInput ?? 0) +
            tokensMicrousd(output, pricing.dearestOutput ?? 0) +
            (pricing.fees({}) ?? 0);
          expect(hold, `${model.provider.id} ${model.id} ${JSON.stringify(usage)}`).toBeGreaterThanOrEqual(
            cost,
          );
        },
      ),
      { numRuns: 5_000 },
    );
  });

  test('cost differs from the float price by less than one microdollar', () => {
    let compared = 0;
    fc.assert(
      fc.property(
        anyModel,
        fc.nat(1_000_000),
        fc.nat(100_000),
        share,
        share,
        share,
        (model, input, output, read, write, thought) => {
          const listed = (usage: Record<string, number>) =>
            calcPrice(usage, model.id, {
              provider: BUNDLED_LIST.providers.get(model.provider.priceList ?? '') ?? expect.unreachable(),
              timestamp: new Date(AT),
            });
          // The library prices a kind without a rate too low.
          const rates = listed({ input_tokens: 0 })?.model_price ?? {};
          const part = (rate: string, whole: number, of: number) =>
            rates[rate] === undefined ? 0 : Math.floor(whole * of);
          const cached = part('cache_read_mtok', input, read);
          const usage = {
            input_tokens: input,
            cache_read_tokens: cached,
            cache_write_tokens: part('cache_write_mtok', input - cached, write),
            output_tokens: output,
            output_reasoning_tokens: part('output_reasoning_mtok', output, thought),
          };
          const cost = pricingOf(model.provider, model.id, OF_ITS_LIST)?.cost(usage);
          if (cost === undefined) return;
          const usd = listed(usage)?.total_price ?? Number.NaN;
          expect(cost - usd * 1e6, `${model.id} ${JSON.stringify(usage)}`).toBeGreaterThanOrEqual(-1e-5);
          expect(cost - usd * 1e6, `${model.id} ${JSON.stringify(usage)}`).toBeLessThan(1);
          compared += 1;
        },
      ),
      { numRuns: 3_000 },
    );
    expect(compared).toBeGreaterThan(2_000);
  });
});
