import { describe, expect, it } from 'vitest';
import { BUILT_IN_PROVIDERS, loadProviders, modelFacts } from '../src/index.ts';
import { BUNDLED_LIST } from '../src/prices/price-list.ts';

const providers = loadProviders('{"acme": {"extends": "openai", "base_url": "https://acme.example"}}');
/** Facts of a model, the provider found by our name or by the price list's. */
const facts = (name: string, model: string) => {
  const found = [...providers.values()].find(({ id, priceList }) => id === name || priceList === name);
  if (found === undefined) throw new Error(`no provider ${name}`);
  return modelFacts(found, model);
};

const UNKNOWN = { contextWindow: undefined, maxOutput: undefined, reasoning: true };

describe('facts of a model', () => {
  it.each([
    ['openai', 'gpt-4o', 128_000, 16_384, false],
    ['openai', 'gpt-4o-2024-11-20', 128_000, 16_384, false],
    ['openai', 'gpt-4-0613', 8_192, 8_192, false],
    ['openai', 'gpt-4-1106-preview', 128_000, 4_096, false],
    ['openai', 'gpt-5.4-2026-03-05', 1_050_000, 128_000, true],
    ['openai', 'o3-mini-2025-01-31', 200_000, 100_000, true],
    ['azure-openai', 'gpt-4.1-mini', 1_047_576, 32_768, false],
    ['anthropic', 'claude-3-5-sonnet-latest', 200_000, 8_192, false],
    ['anthropic', 'claude-opus-4-20250514', 200_000, 32_000, true],
    ['anthropic', 'claude-opus-4-5-20251101', 200_000, 64_000, true],
    ['anthropic', 'claude-sonnet-4@20250514', 200_000, 64_000, true],
    ['google', 'gemini-2.0-flash-001', 1_048_576, 8_192, false],
    ['google', 'gemini-2.5-pro-preview-03-25', 1_048_576, 65_536, true],
    ['google', 'gemini-flash-latest', 1_048_576, 65_536, true],
    ['cohere', 'command-a-03-2025', 262_144, 8_192, false],
    ['cohere', 'command-a-reasoning-08-2025', 262_144, 32_768, true],
    ['groq', 'openai/gpt-oss-120b', 131_072, 65_536, true],
    ['mistral', 'mistral-large-2512', 262_144, 262_144, false],
    ['xai', 'grok-4-0709', 262_144, 262_144, true],
    ['x-ai', 'grok-4.5', 500_000, 500_000, true],
    ['azure', 'gpt-4o', 128_000, 16_384, false],
    ['perplexity', 'sonar-pro', 200_000, 8_192, false],
    ['openrouter', 'anthropic/claude-sonnet-4.5', undefined, 64_000, true],
    ['openrouter', 'x-ai/grok-4.5', undefined, 500_000, true],
  ])('%s %s', (provider, model, contextWindow, maxOutput, reasoning) => {
    expect(facts(provider, model)).toEqual({ contextWindow, maxOutput, reasoning });
  });

  it.each([
    ['openai', 'gpt-4o-realtime'],
    ['openai', 'gpt-5-ultra'],
    ['anthropic', 'claude-opus-4-9'],
    ['google', 'gemini-2.5-flash-preview-tts'],
    ['mistral', 'mistral-large-2402'],
    ['openai', ''],
    ['openai', 'constructor'],
    ['acme', 'gpt-4o'],
    ['openrouter', 'gpt-4o'],
  ])('of %s %j are unknown, so it is assumed to reason: no other model replaces it', (provider, model) => {
    expect(facts(provider, model)).toEqual(UNKNOWN);
  });

  it("never have a narrower window than the price list's", () => {
    const smaller = [...BUILT_IN_PROVIDERS.values()].flatMap(({ id, priceList = '' }) =>
      (BUNDLED_LIST.providers.get(priceList)?.models ?? [])
        .filter(
          (model) =>
            (facts(id, model.id).contextWindow ?? Number.POSITIVE_INFINITY) < (model.context_window ?? 0),
        )
        .map((model) => model.id),
    );
    expect(smaller).toEqual([]);
  });
});
