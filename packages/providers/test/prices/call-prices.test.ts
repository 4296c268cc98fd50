import { describe, expect, it } from 'vitest';
import {
  answeredBy,
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  coverageOf,
  loadProviders,
  type Pricing,
  type Provider,
  pricedModels,
  pricingOf,
} from '../../src/index.ts';
import { isJsonObject } from '../../src/json.ts';
import { isSameModel } from '../../src/model-names.ts';
import { refuses } from '../../src/vendor-rules.ts';

const AT = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-26') };
const USED = { input_tokens: 1_000_000, cache_read_tokens: 100_000, output_tokens: 100_000 };
const costOf = (pricing: Pricing | undefined) => pricing?.cost(USED);

const known = (id: string, file: object = {}): Provider => {
  const found = loadProviders(JSON.stringify({ [id]: { answer_headers: [], ...file } })).get(id);
  if (!found) throw new Error(`no ${id}`);
  return found;
};
const BASE = { base_url: 'https://me.openai.azure.com' };
const azure = known('azure-openai', {
  ...BASE,
  deployments: { chat: 'gpt-4o', 'chat-eu': 'eu/gpt-4o', dated: 'gpt-4o-2024-08-06' },
});

/** Names under which vendors answer for a model. */
const aliasesOf = (model: string): readonly string[] => [
  ...['', '-latest', '-001', '-2026-01-02', '@20260102'].map((version) => model + version),
  model.toUpperCase(),
];

/** The names that an entry of a list spells out. */
function namesIn(match: unknown): readonly string[] {
  if (Array.isArray(match)) return match.flatMap(namesIn);
  if (!isJsonObject(match)) return [];
  return Object.entries(match).flatMap(([clause, value]) =>
    clause === 'equals' && typeof value === 'string' ? [value] : namesIn(value),
  );
}

const PRICED = [...BUILT_IN_PROVIDERS.values()].filter(({ priceList }) => priceList !== undefined);

describe.each(PRICED.map((provider) => [provider.id, provider] as const))(
  'an honest answer of %s',
  (_, provider) => {
    it('under an alias, or with a date, costs as the model that was called', () => {
      for (const model of pricedModels(provider, AT.prices)) {
        const asked = costOf(pricingOf(provider, model, AT));
        // A name at Bedrock ends in its version.
        if (asked === undefined || /:\d+$/.test(model) || refuses(provider.rules, model)) continue;
        const { dearestInput = 0, dearestOutput = 0 } = coverageOf(provider, model, AT).pricing ?? {};
        const dearest = dearestInput + dearestOutput / 10;
        for (const name of aliasesOf(model)) {
          const { other, pricing } = answeredBy(provider, model, name, AT);
          expect(other, `${model} as ${name}`).toBeUndefined();
          const cost = costOf(pricing) ?? Number.NaN;
          if (provider.namesDeployments) expect(cost, `${model} as ${name}`).toBeLessThanOrEqual(dearest);
          else expect(cost, `${model} as ${name}`).toBe(asked);
        }
      }
    });

    it('under another name of the same entry of a list names no other model', () => {
      for (const list of AT.prices.layers.flat())
        for (const { match } of list.providers.get(provider.priceList ?? '')?.models ?? []) {
          const names = namesIn(match);
          for (const [called, answered] of names.flatMap((a) => names.map((b) => [a, b] as const))) {
            if (!pricingOf(provider, called, AT) || refuses(provider.rules, called)) continue;
            const { other, pricing } = answeredBy(provider, called, answered, AT);
            expect([called, answered, other]).toEqual([called, answered, undefined]);
            expect(pricing, `${called} as ${answered}`).toBeDefined();
          }
        }
    });
  },
);

it.each([
  ['gpt-4o', 'gpt-4o-2024-08-06'],
  ['claude-sonnet-4.5', 'anthropic/claude-4.5-sonnet-20250929'],
  ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'claude-sonnet-4-5-20250929'],
  ['arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-haiku-4-5-v1:0', 'claude-haiku-4-5'],
  ['claude-opus-4-1@20250805', 'claude-opus-4-1-20250805'],
  ['openai/gpt-oss-120b', 'gpt-oss-120b'],
  ['minimax/minimax-01', 'minimax-01-2026-01-02'],
])('%s and %s are one model', (a, b) => {
  expect([isSameModel(a, b), isSameModel(b, a)]).toEqual([true, true]);
});

it.each([
  ['gpt-4o', 'gpt-4o-mini'],
  ['gpt-4o-mini', 'gpt-4o'],
  ['gpt-4.1', 'gpt-4'],
  ['gpt-oss-120b', 'gpt-oss-20b'],
  ['claude-3-5-sonnet', 'claude-sonnet-5-3'],
  ['o1', 'o1-pro'],
  ['llama-3.1-8b-instant', 'llama-3.1-70b-instant'],
  ['x'.repeat(300), `${'x'.repeat(300)}-2026-01-02`],
])('%s and %s are two models', (a, b) => {
  expect(isSameModel(a, b)).toBe(false);
});

describe('a deployment', () => {
  const price = (model: string) => costOf(pricingOf(azure, model, AT));

  it('whose model is named has the price of that model', () => {
    expect(price('chat')).toBe(price('gpt-4o'));
    expect(price('chat-eu')).toBe(price('eu/gpt-4o'));
    expect(price('chat-eu')).not.toBe(price('gpt-4o'));
  });

  it.each([
    ['chat', 'gpt-4o-2024-08-06', 'gpt-4o-2024-08-06', undefined],
    ['chat', 'chat', 'gpt-4o', undefined],
    ['chat', 'gpt-4o-mini', 'gpt-4o-mini', 'gpt-4o-mini'],
    ['chat', 'gpt-0', undefined, 'gpt-0'],
    ['chat-eu', 'gpt-4o-2024-08-06', 'eu/gpt-4o-2024-08-06', undefined],
    ['chat-eu', 'gpt-0', undefined, 'gpt-0'],
    ['gpt-4o-mini', 'gpt-4o-2024-08-06', 'gpt-4o-2024-08-06', 'gpt-4o-2024-08-06'],
    ['gpt-4o-mini', 'gpt-4o-mini', 'gpt-4o-mini', undefined],
    ['not-named', 'gpt-4o-2024-08-06', 'gpt-4o-2024-08-06', 'gpt-4o-2024-08-06'],
    ['not-named', 'not-named', undefined, undefined],
  ])('%s that answers as %s is charged as %s', (called, answered, charged, other) => {
    const found = answeredBy(azure, called, answered, AT);
    expect([costOf(found.pricing), found.other]).toEqual([charged && price(charged), other]);
  });

  it('that no operator names holds the dearest model of the list, and its window', () => {
    const { pricing, facts } = coverageOf(azure, 'gpt-4o-mini', AT);
    const listed = pricedModels(azure, AT.prices).flatMap((model) => pricingOf(azure, model, AT) ?? []);
    const writing = listed.filter(({ dearestOutput }) => dearestOutput !== undefined);
    expect(pricing?.dearestInput).toBe(Math.max(...writing.map(({ dearestInput = 0 }) => dearestInput)));
    expect(pricing?.dearestOutput).toBe(Math.max(...writing.map(({ dearestOutput = 0 }) => dearestOutput)));
    expect(facts).toEqual({ contextWindow: 1_050_000, maxOutput: 272_000, reasoning: true });
  });

  it('of embeddings that no operator names holds the dearest model of embeddings', () => {
    const { pricing } = coverageOf(azure, 'text-embedding-3-small', AT);
    expect(pricing?.dearestOutput).toBeUndefined();
    expect(pricing?.dearestInput).toBeGreaterThanOrEqual(143_000);
    expect(pricing?.dearestInput).toBeLessThan(3_000_000);
  });

  it('whose model is named holds the dearest version of it in any zone, and that of a version no other', () => {
    expect(coverageOf(azure, 'chat', AT).pricing?.rates).toMatchObject({
      input: 5_500_000,
      output: 16_500_000,
    });
    expect(coverageOf(azure, 'dated', AT).pricing?.dearestOutput).toBeLessThan(15_000_000);
    expect(coverageOf(azure, 'chat', AT).facts.contextWindow).toBe(128_000);
  });

  it('with a price of the operator has that price, whichever model answers', () => {
    const own = known('azure-openai', { ...BASE, pricing: { mine: { input: 7, output: 8 } } });
    expect(coverageOf(own, 'mine', AT).pricing?.rates).toEqual({ input: 7, output: 8 });
    expect(answeredBy(own, 'mine', 'gpt-4o-2024-08-06', AT).pricing?.rates).toEqual({ input: 7, output: 8 });
  });

  it('of a provider that extends Azure has the price of the model that its operator prices', () => {
    const mine = known('mine', {
      ...BASE,
      extends: 'azure-openai',
      pricing: { 'gpt-x': { input: 7, output: 8 }, 'gpt-y': { input: 70, output: 80 } },
      deployments: { prod: 'gpt-x' },
    });
    expect(coverageOf(mine, 'prod', AT).pricing?.rates).toEqual({ input: 7, output: 8 });
    expect(answeredBy(mine, 'prod', 'gpt-x-2026-01-02', AT)).toMatchObject({
      pricing: { rates: { input: 7 } },
    });
    expect(answeredBy(mine, 'prod', 'gpt-y', AT)).toMatchObject({
      other: 'gpt-y',
      pricing: { rates: { input: 70 } },
    });
  });
});

describe('a model that runs others', () => {
  const router = known('azure-openai', { ...BASE, deployments: { mine: 'model-router' } });

  it.each([
    [router, 'model-router'],
    [router, 'mine'],
    [known('groq'), 'groq/compound'],
    [known('openrouter'), 'openrouter/auto'],
  ])('has no known cost by the model that its answer names', (provider, called) => {
    const [listed = ''] = pricedModels(provider, AT.prices).filter((model) => !model.includes('router'));
    expect(answeredBy(provider, called, listed, AT)).toEqual({ pricing: undefined });
  });

  it('has no price for a hold when an operator names it', () => {
    expect(coverageOf(router, 'mine', AT).pricing).toBeUndefined();
  });
});

describe('a model of another vendor', () => {
  const openrouter = known('openrouter');
  const rates = (model: string) => pricingOf(openrouter, model, AT)?.rates;

  it('that answers in the place of the one that was called has its own price', () => {
    expect(answeredBy(openrouter, 'openai/gpt-4o-mini', 'openai/gpt-4o', AT)).toMatchObject({
      other: 'openai/gpt-4o',
      pricing: { rates: rates('openai/gpt-4o') },
    });
    expect(answeredBy(openrouter, undefined, 'openai/gpt-4o', AT).pricing?.rates).toEqual(
      rates('openai/gpt-4o'),
    );
    expect(answeredBy(openrouter, 'openai/gpt-4o', 'maker/unlisted', AT)).toEqual({
      other: 'maker/unlisted',
    });
  });

  it('that an operator prices has that price under whatever name it answers', () => {
    const local = known('local', {
      extends: 'openai',
      base_url: 'http://127.0.0.1:1',
      pricing: { llama: { input: 1, output: 2 }, big: { input: 10, output: 20 } },
    });
    expect(answeredBy(local, 'llama', '/models/llama.gguf', AT)).toMatchObject({
      pricing: { rates: { input: 1 } },
    });
    expect(answeredBy(local, 'llama', 'big', AT)).toMatchObject({
      other: 'big',
      pricing: { rates: { input: 10 } },
    });
  });
});

it.each([
  ['a provider without deployments', 'openai', { a: 'gpt-4o' }, /openai\.deployments: only azure-openai/],
  ['a model that is no name', 'azure-openai', { a: 5 }, /azure-openai\.deployments\.a: /],
])('deployments of %s stop the service with an error', (_, id, deployments, says) => {
  expect(() => known(id, { ...BASE, deployments })).toThrow(says);
});
