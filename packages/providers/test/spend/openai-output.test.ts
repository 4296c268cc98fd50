import { describe, expect, it } from 'vitest';
import { boundOf, CHAT, chatBody, FACTS, refusedIn, spendOf } from './openai-call.ts';

const OPENAI = ['openai', '/v1/chat/completions'] as const;
const NAMES = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];

describe.each([
  ...CHAT,
  ['openai', '/v1/responses'],
  ['openai', '/v1/completions'],
  ['mistral', '/v1/fim/completions'],
] as const)('the output of %s %s', (provider, path) => {
  const body = path.endsWith('chat/completions') ? chatBody() : { model: 'm', prompt: 'Hi' };
  const base = path.endsWith('responses') ? { model: 'm', input: 'Hi' } : body;

  it('is bounded under one name, and every other spelling is removed', () => {
    const given = Object.fromEntries(NAMES.map((name) => [name, 900]));
    const written = spendOf(provider, path).withOutputBound?.({ ...base, ...given }, 300) ?? {};
    expect(NAMES.filter((name) => name in written)).toHaveLength(1);
    expect(NAMES.map((name) => written[name])).toContain(300);
    expect(written).toMatchObject(base);
  });

  it.each(NAMES)('follows %s, under any name of the API', (name) => {
    expect(boundOf(provider, path, { ...base, [name]: 900 }).output).toMatchObject({
      asked: 900,
      least: 256,
    });
    expect(boundOf(provider, path, { ...base, [name]: 100 }).output).toMatchObject({
      asked: 100,
      least: 100,
    });
  });

  it.each([-1, 0, 1.5, '100', true, [], 2 ** 60])('has no bound if %j is asked for', (value) => {
    expect(refusedIn(provider, path, { ...base, max_tokens: value })).toBe('max_tokens');
  });

  it('has no bound if two names disagree', () => {
    expect(refusedIn(provider, path, { ...base, max_tokens: 5, max_completion_tokens: 6 })).toBe(
      'max_completion_tokens',
    );
  });

  it('is at most what the model can write', () => {
    expect(boundOf(provider, path, { ...base, max_tokens: 10 ** 9 }).output?.asked).toBe(16_384);
  });
});

describe('without a bound given', () => {
  const asked = (facts: Partial<typeof FACTS>) =>
    boundOf(...OPENAI, chatBody({ max_tokens: null }), { ...FACTS, ...facts }).output?.asked;

  it('the bound is 4,096 tokens, or 32,768 if the model thinks, and at most its own maximum', () => {
    expect(asked({})).toBe(4_096);
    expect(asked({ reasoning: true, maxOutput: 100_000 })).toBe(32_768);
    expect(asked({ reasoning: true })).toBe(16_384);
    expect(asked({ maxOutput: 1_024 })).toBe(1_024);
    expect(asked({ maxOutput: undefined, contextWindow: 2_000 })).toBe(2_000);
  });
});

describe('choices', () => {
  it('are each held', () => {
    expect(boundOf(...OPENAI, chatBody({ n: 3 })).output?.times).toBe(3);
    expect(boundOf(...OPENAI, chatBody({ n: null })).output?.times).toBe(1);
  });

  it.each([0, -1, 1.5, '2', 1_000, []])('have no bound if there are %j', (n) => {
    expect(refusedIn(...OPENAI, chatBody({ n }))).toBe('n');
  });
});

describe('thinking that has a budget', () => {
  it('has room under the lowest bound', () => {
    const path = '/inference/v1/chat/completions';
    const thinking = { type: 'enabled', budget_tokens: 2_000 };
    expect(boundOf('fireworks', path, chatBody({ thinking, max_tokens: 5_000 })).output?.least).toBe(2_001);
    expect(
      boundOf('fireworks', path, chatBody({ reasoning_effort: 3_000, max_tokens: 5_000 })).output?.least,
    ).toBe(3_001);
  });

  it('has no bound if the budget is not a number', () => {
    const thinking = { type: 'enabled', budget_tokens: 'lots' };
    expect(refusedIn('fireworks', '/inference/v1/chat/completions', chatBody({ thinking }))).toBe(
      'reasoning',
    );
  });
});

describe('the standard price', () => {
  it.each([
    ['openai', '/v1/chat/completions', 'default'],
    ['openai', '/v1/responses', 'default'],
    ['mistral', '/v1/chat/completions', 'standard_only'],
    ['groq', '/openai/v1/chat/completions', undefined],
    ['openai', '/v1/completions', undefined],
  ])('of %s %s is service_tier %s, for any tier that the holder asks for', (provider, path, tier) => {
    for (const sent of [{}, { service_tier: 'priority' }, { service_tier: 'auto' }]) {
      const body = spendOf(provider, path).atStandardPrice?.({ model: 'm', ...sent });
      expect(body).toEqual(tier === undefined ? { model: 'm' } : { model: 'm', service_tier: tier });
    }
  });
});

describe('usage of a stream', () => {
  const streamed = chatBody({ stream: true });

  it('is asked for where the provider needs it, also if the holder declines it', () => {
    const ask = (body: object) => spendOf(...OPENAI).askUsage?.({ ...streamed, ...body });
    expect(ask({})).toEqual({ ...streamed, stream_options: { include_usage: true } });
    expect(ask({ stream_options: { include_usage: false, include_obfuscation: false } })).toMatchObject({
      stream_options: { include_usage: true, include_obfuscation: false },
    });
    expect(ask({ stream_options: { include_usage: true } })).toBeUndefined();
    expect(ask({ stream: false })).toBeUndefined();
  });

  it('is not requested where the provider sends it anyway or refuses the field', () => {
    for (const [provider, path] of CHAT) {
      const asks = ['openai', 'azure-openai', 'deepseek', 'xai', 'google'].includes(provider);
      expect(spendOf(provider, path).askUsage !== undefined, provider).toBe(asks);
    }
  });

  it('is not requested where Azure refuses the field', () => {
    const refuses = (body: object, query = '', path = '/openai/deployments/gpt-4o/chat/completions') =>
      spendOf('azure-openai', path).refusesAsking?.({ ...streamed, ...body }, query)?.param;
    const V1 = '/openai/v1/chat/completions';
    expect(refuses({ data_sources: [] }, 'api-version=2025-01-01-preview')).toBe('data_sources');
    expect(refuses({ data_sources: [] }, '', V1)).toBe('data_sources');
    expect(refuses({}, 'api-version=2023-05-15')).toBe('api-version');
    expect(refuses({}, 'x=1&API-Version=2024-08-01-preview')).toBe('api-version');
    expect(refuses({}, 'api-version=2023-05-15', '/openai/deployments/x/completions')).toBe('api-version');
    for (const version of ['2024-09-01-preview', '2024-10-21', '2025-01-01-preview', 'preview', 'v1'])
      expect(refuses({}, `api-version=${version}`)).toBeUndefined();
    expect(refuses({}, '', V1)).toBeUndefined();
    expect(spendOf(...OPENAI).refusesAsking).toBeUndefined();
  });

  it('arrives in a chunk that differs from all others', () => {
    const is = (chunk: unknown) => spendOf(...OPENAI).isUsageEvent?.(JSON.stringify(chunk));
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    expect(is({ choices: [], usage })).toBe(true);
    expect(is({ choices: [], usage: null, prompt_filter_results: [] })).toBe(false);
    expect(is({ choices: [{ index: 0, delta: { content: '"usage"' } }], usage: null })).toBe(false);
    expect(is({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage })).toBe(false);
    expect(spendOf(...OPENAI).isUsageEvent?.('[DONE] "usage"')).toBe(false);
  });

  it('is streamed only if the body says true', () => {
    expect(spendOf(...OPENAI).streams(streamed, '', '')).toBe(true);
    expect(spendOf(...OPENAI).streams(chatBody(), '', '')).toBe(false);
    expect(refusedIn(...OPENAI, chatBody({ stream: 'true' }))).toBe('stream');
  });
});
