import { describe, expect, it } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  chargedPrice,
  loadProviders,
  type Provider,
  pricedModels,
  pricingOf,
  spendOf,
  TOKEN_KINDS,
  type Usage,
} from '../../src/index.ts';

const AT = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-26') };
const known = (id: string): Provider => {
  const found = BUILT_IN_PROVIDERS.get(id);
  if (!found) throw new Error(`no ${id}`);
  return found;
};

/** The cost that the answer of a model states, as it is without a limit. */
function costOf(provider: Provider, path: string, model: string, answer: object): number | undefined {
  const reported = spendOf(provider, path)?.readAnswer({ ...answer, model });
  return reported && chargedPrice(pricingOf(provider, model, AT), reported)?.microusd;
}

describe('sound', () => {
  const answer = {
    choices: [{ message: { role: 'assistant', audio: { data: 'AAAA' } } }],
    usage: {
      ...{ prompt_tokens: 120, completion_tokens: 592, total_tokens: 712 },
      prompt_tokens_details: { text_tokens: 20, audio_tokens: 100, cached_tokens: 0 },
      completion_tokens_details: { text_tokens: 110, audio_tokens: 482, reasoning_tokens: 0 },
    },
  };

  it.each([
    ['gpt-4o-audio-preview', 43_710],
    ['gpt-4o-audio-preview-2025-06-03', 43_710],
    ['gpt-4o-mini-audio-preview', 10_709],
    ['gpt-audio', 50 + 3_200 + 1_100 + 30_848],
    ['gpt-audio-mini', 12 + 1_000 + 264 + 9_640],
    ['gpt-4o', undefined],
    ['gpt-4o-mini', undefined],
  ])('of %s costs its own rates, and is not known without them', (model, cost) => {
    expect(costOf(known('openai'), '/v1/chat/completions', model, answer)).toBe(cost);
  });
});

/** A usage that is nearly all of one kind. */
const mostly = (kind: string): Usage => ({
  ...{ input_tokens: 1_000, output_tokens: 1_000, cache_read_tokens: kind.startsWith('cache_') ? 500 : 0 },
  ...(kind.endsWith('_read') && kind !== 'cache_read' && { [`input_${kind.split('_')[1]}_tokens`]: 500 }),
  [`${kind}_tokens`]: 500,
});
const MEDIA = TOKEN_KINDS.filter((kind) => /audio|image|video/.test(kind));

it('no list prices sound, pictures or video as text unless the vendor does', () => {
  const priced = [...BUILT_IN_PROVIDERS.values()].filter(({ priceList }) => priceList !== undefined);
  for (const provider of priced) {
    for (const model of pricedModels(provider, AT.prices)) {
      const pricing = pricingOf(provider, model, AT);
      for (const kind of pricing ? MEDIA : []) {
        const part = kind.replace('cache_', 'input_').replace('_read', '') as (typeof MEDIA)[number];
        const isCovered =
          provider.mediaAsWhole?.has(kind) ||
          pricing?.rates[kind] !== undefined ||
          (kind !== part && pricing?.rates[part] !== undefined);
        if (isCovered || !(`${kind}_tokens` in mostly(kind))) continue;
        expect(pricing?.cost(mostly(kind)), `${provider.id} ${model} ${kind}`).toBeUndefined();
      }
    }
  }
});

it('an operator who states input and output alone prices all kinds with them', () => {
  const file = {
    mine: {
      extends: 'google',
      base_url: 'https://m.example',
      pricing: { m: { input: 1_000_000, output: 1_000_000 } },
    },
  };
  const mine = loadProviders(JSON.stringify(file)).get('mine');
  for (const kind of MEDIA) expect(mine && pricingOf(mine, 'm', AT)?.cost(mostly(kind)), kind).toBe(2_000);
});

describe('grounding at Gemini', () => {
  const WEB = { groundingChunks: [{ web: { uri: 'https://a.example' } }], webSearchQueries: ['a', 'b'] };
  const MAPS = { groundingChunks: [{ maps: { uri: 'https://m.example' } }] };
  const answer = (groundingMetadata?: object) => ({
    candidates: [
      {
        content: { parts: [{ text: 'x' }] },
        finishReason: 'STOP',
        ...(groundingMetadata && { groundingMetadata }),
      },
    ],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 200, totalTokenCount: 300 },
  });

  it.each([
    ['gemini-2.5-flash', WEB, 35_000],
    ['gemini-2.0-flash', WEB, 35_000],
    ['gemini-3.5-flash', WEB, 2 * 14_000],
    ['gemini-2.5-flash', MAPS, 25_000],
    [
      'gemini-2.5-flash',
      { groundingChunks: [...WEB.groundingChunks, ...MAPS.groundingChunks], webSearchQueries: ['a'] },
      60_000,
    ],
    ['gemini-2.5-flash', {}, 0],
  ])('of %s by %j costs its fee', (model, metadata, fee) => {
    const path = `/v1beta/models/${model}:generateContent`;
    const plain = costOf(known('google'), path, model, answer()) ?? Number.NaN;
    expect(costOf(known('google'), path, model, answer(metadata))).toBe(plain + fee);
  });

  it.each([
    ['a generation whose queries for Maps answers do not count', 'gemini-3.5-flash', MAPS],
    ['a name without a generation', 'gemini-flash-latest', WEB],
    ['a source whose fee is not known', 'gemini-2.5-flash', { groundingChunks: [{ retrievedContext: {} }] }],
  ])('of %s has no known cost', (_, model, metadata) => {
    const path = `/v1beta/models/${model}:generateContent`;
    expect(costOf(known('google'), path, model, answer(metadata))).toBeUndefined();
  });

  it('costs what an operator states', () => {
    const fees = { grounded_prompts: 45_000, grounding_searches: 0 };
    const file = {
      vertex: {
        pricing: { 'gemini-x': { input: 0, output: 0, ...fees }, 'gemini-y': { input: 0, output: 0 } },
      },
    };
    const vertex = loadProviders(JSON.stringify(file)).get('vertex');
    const path = '/v1/projects/p/locations/global/publishers/google/models/gemini-x:generateContent';
    expect(vertex && costOf(vertex, path, 'gemini-x', answer(WEB))).toBe(45_000);
    expect(vertex && costOf(vertex, path, 'gemini-y', answer(WEB))).toBeUndefined();
  });
});

describe('searches of Responses', () => {
  const answer = (...tools: object[]) => ({
    ...{ object: 'response', status: 'completed', tools },
    output: [
      { type: 'web_search_call', action: { type: 'search', query: 'a' } },
      { type: 'web_search_call', action: { type: 'open_page' } },
      { type: 'message', content: [{ type: 'output_text', text: 'x' }] },
    ],
    usage: { input_tokens: 10_000, output_tokens: 500, total_tokens: 10_500 },
  });

  it.each([
    ['gpt-4o', 'web_search_preview', 30_000 + 25_000],
    ['gpt-4o-2024-08-06', 'web_search_preview_2025_03_11', 30_000 + 25_000],
    ['gpt-4o', 'web_search', 30_000 + 10_000],
    ['gpt-5-mini', 'web_search_preview', 3_500 + 10_000],
    ['gpt-5-mini', 'web_search', 3_500 + 10_000],
    ['gpt-5-chat-latest', 'web_search_preview', undefined],
  ])('of %s with %s cost their fee', (model, type, cost) => {
    expect(costOf(known('openai'), '/v1/responses', model, answer({ type }))).toBe(cost);
  });
});
