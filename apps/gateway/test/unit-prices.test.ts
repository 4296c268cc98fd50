import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  type JsonObject,
  loadProviders,
  spendOf,
} from '@presign/providers';
import { describe, expect, test } from 'vitest';
import { worstCase } from '../src/llm/hold.ts';

const NOW = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-22T12:00:00Z') };

const sizeOf = (body: JsonObject) => Buffer.byteLength(JSON.stringify(body));

/** The hold of a call in microdollars, or the code of its refusal. */
function holdOf(id: string, path: string, body: JsonObject, providers = BUILT_IN_PROVIDERS) {
  const provider = providers.get(id);
  if (!provider) throw new Error(id);
  const call = { spend: spendOf(provider, path), body, path, sizeOf };
  const held = worstCase(provider, call, { costLimited: true, at: NOW });
  if ('refusal' in held) return held.refusal.code;
  const { fixedMicrousd = 0, ratePerMtok = 0, askedTokens = 0 } = held.hold ?? {};
  return fixedMicrousd + Math.ceil((ratePerMtok * askedTokens) / 1e6);
}

const IMAGES = '/v1/images/generations';
const SPEECH = '/v1/audio/speech';
const draw = (model: string, more: JsonObject = {}) => ({ model, prompt: 'x', ...more });
const say = (model: string) => ({ model, input: 'x'.repeat(1_000), voice: 'alloy' });
const square = (quality: string) => ({ quality, size: '1024x1024' });
const predict = (model: string) => `/v1beta/models/${model}:predict`;
const four = { instances: [{ prompt: 'x' }] };

/** Far above the input of a call here at $10 for a million tokens: its 100 bytes and the 256 that OpenAI may add. */
const INPUT = 5_000;

describe('each published unit price, by vendor, endpoint and model', () => {
  // $40, $8 and $30 for a million output tokens.
  test.each([
    ['openai', IMAGES, draw('gpt-image-1', square('low')), 272 * 40],
    ['openai', IMAGES, draw('gpt-image-1', square('high')), 4_160 * 40],
    ['openai', IMAGES, draw('gpt-image-1'), 6_240 * 40],
    ['openai', IMAGES, draw('gpt-image-1-mini', square('medium')), 1_056 * 8],
    ['openai', IMAGES, draw('gpt-image-2', square('high')), 211_000],
    ['openai', IMAGES, draw('gpt-image-2-2026-04-21', square('low')), 6_000],
  ])('%s %s %j holds $0.000001 × %i for its image, plus its input', (id, path, body, microusd) => {
    const hold = holdOf(id, path, body);
    expect(hold).toBeGreaterThan(microusd);
    expect(hold).toBeLessThan(microusd + INPUT);
    const three = Number(holdOf(id, path, { ...body, n: 3 }));
    expect(three).toBeGreaterThan(3 * microusd);
    expect(three).toBeLessThan(3 * (microusd + INPUT));
  });

  test.each([
    ['openai', SPEECH, say('tts-1'), 15_000],
    ['openai', SPEECH, say('tts-1-hd'), 30_000],
    ['groq', '/openai/v1/audio/speech', say('canopylabs/orpheus-v1-english'), 22_000],
    ['groq', '/openai/v1/audio/speech', say('canopylabs/orpheus-arabic-saudi'), 40_000],
    ['google', predict('imagen-4.0-fast-generate-001'), four, 4 * 20_000],
    ['google', predict('imagen-4.0-generate-001'), { ...four, parameters: { sampleCount: 1 } }, 40_000],
    ['google', predict('imagen-4.0-ultra-generate-001'), four, 4 * 60_000],
  ])('%s %s %j holds exactly %i', (id, path, body, microusd) => {
    expect(holdOf(id, path, body)).toBe(microusd);
  });

  test.each([
    ['openai', IMAGES, draw('gpt-image-2'), 'cost_unbounded'],
    ['openai', IMAGES, draw('gpt-image-1.5', square('low')), 'cost_unbounded'],
    ['openai', IMAGES, draw('gpt-4o-mini'), 'cost_unbounded'],
    ['openai', IMAGES, draw('dall-e-3'), 'price_unknown'],
    ['openai', IMAGES, { prompt: 'x' }, 'cost_unbounded'],
    ['openai', SPEECH, say('gpt-4o-mini-tts'), 'cost_unbounded'],
    ['openai', '/v1/images/edits', draw('gpt-image-1'), 'cost_unbounded'],
    ['openai', '/v1/images/variations', draw('dall-e-2'), 'cost_unbounded'],
    ['xai', IMAGES, draw('grok-imagine-image'), 'price_unknown'],
    ['google', predict('gemini-2.5-flash'), four, 'cost_unbounded'],
    ['together', IMAGES, draw('black-forest-labs/FLUX.1-schnell'), 'cost_unbounded'],
  ])('%s %s %j has no bound: %s', (id, path, body, code) => {
    expect(holdOf(id, path, body)).toBe(code);
  });
});

test("the operator's prices for images and characters bound calls that no vendor's page prices", () => {
  const prices = {
    xai: { pricing: { 'grok-imagine-image': { images: 20_000 } } },
    groq: { pricing: { 'acme-speech': { characters: 25 } } },
  };
  const providers = loadProviders(JSON.stringify(prices));
  expect(holdOf('xai', IMAGES, draw('grok-imagine-image', { n: 3 }), providers)).toBe(60_000);
  expect(holdOf('groq', '/openai/v1/audio/speech', say('acme-speech'), providers)).toBe(25_000);
});

test("a server with the API of another provider has none of that provider's prices", () => {
  const file = JSON.stringify({ mine: { extends: 'openai', base_url: 'https://api.mine.example' } });
  expect(holdOf('mine', SPEECH, say('tts-1'), loadProviders(file))).toBe('price_unknown');
});

/** Every endpoint that costs images or characters, with a small call of a model. */
const CALLS: readonly [pattern: RegExp, (model: string) => JsonObject][] = [
  [/\/images\/generations$/, (model) => draw(model, { n: 2, ...square('low') })],
  [/\/audio\/speech$/, say],
  [/:predict$/, () => four],
];
const endpoints = [...BUILT_IN_PROVIDERS.values()].flatMap((provider) =>
  provider.routes.flatMap(({ path }) =>
    CALLS.flatMap(([pattern, callOf]) => (pattern.test(path) ? [{ provider, path, callOf }] : [])),
  ),
);

test.each(endpoints.map((at) => ({ ...at, name: `${at.provider.id} ${at.path}` })))(
  '$name holds money for each listed model, or refuses it',
  ({ provider, path, callOf }) => {
    const { priceList = '', unitPrices } = provider;
    const listed = BUNDLED_PRICES.layers
      .flat()
      .flatMap(({ providers }) => providers.get(priceList)?.models ?? [])
      .map(({ id }) => id);
    expect(listed.length).toBeGreaterThan(5);
    for (const model of [...listed, ...(unitPrices?.keys() ?? []), 'some-model']) {
      const at = path.replace('models/*', `models/${model}`).replaceAll('*', 'v1');
      const hold = holdOf(provider.id, at, callOf(model));
      if (typeof hold === 'string') expect(['cost_unbounded', 'price_unknown'], model).toContain(hold);
      else expect(hold, model).toBeGreaterThan(0);
    }
  },
);
