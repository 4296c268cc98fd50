import { calcPrice, extractUsage, findProvider } from '@pydantic/genai-prices';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/index.ts';
import { ANSWERS } from './openai-answers.ts';
import { spendOf } from './openai-call.ts';

describe('usage of an answer', () => {
  it.each(ANSWERS)(
    'equals the usage that the price list’s own reader finds: %s %s %s',
    (provider, path, list, flavor, answer) => {
      const listed = findProvider({ providerId: list });
      if (listed === undefined) throw new Error(`no list ${list}`);
      const theirs = extractUsage(listed, answer, flavor);
      const ours = spendOf(provider, path).readAnswer(answer);
      expect(ours).toBeDefined();
      expect(ours?.model).toBe(theirs.model);
      expect(ours?.usage).toEqual(
        Object.fromEntries(Object.entries(theirs.usage).filter(([, count]) => count)),
      );
      const price = (usage: JsonObject) =>
        calcPrice(usage as Record<string, number>, String(answer.model), { providerId: list });
      expect(price(theirs.usage)?.total_price).toBeGreaterThan(0);
      expect(price(ours?.usage ?? {})?.total_price).toBe(price(theirs.usage)?.total_price);
    },
  );

  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const read = (provider: string, path: string, held: unknown) =>
    spendOf(provider, path).readAnswer({ model: 'm', choices: [], usage: held })?.usage;
  const chat = (held: unknown) => read('openai', '/v1/chat/completions', held);

  it.each([
    undefined,
    null,
    [],
    {},
    { prompt_tokens: 10 },
    { completion_tokens: 5 },
    { ...usage, prompt_tokens: -1 },
    { ...usage, completion_tokens: 0.5 },
    { ...usage, completion_tokens: '5' },
    { ...usage, prompt_tokens: 2 ** 60 },
    { ...usage, prompt_tokens_details: { cached_tokens: -4 } },
    { ...usage, num_sources_used: 3 },
    { ...usage, server_tool_use_details: { web_search_requests: 1 } },
  ])('is unknown if it is not reported in full: %j', (held) => {
    expect(chat(held)).toBeUndefined();
  });

  it('treats null details as absent', () => {
    expect(
      chat({ ...usage, prompt_tokens_details: null, completion_tokens_details: { reasoning_tokens: null } }),
    ).toEqual({
      input_tokens: 10,
      output_tokens: 5,
    });
  });

  it('reads DeepSeek’s cache hits under either name', () => {
    expect(read('deepseek', '/chat/completions', { ...usage, prompt_cache_hit_tokens: 8 })).toMatchObject({
      cache_read_tokens: 8,
    });
  });

  it('counts tokens that only the total contains, such as Gemini’s thoughts, as output', () => {
    const held = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 75 };
    expect(read('google', '/v1beta/openai/chat/completions', held)).toEqual({
      input_tokens: 10,
      output_tokens: 65,
    });
  });

  it('counts cached tokens that are reported apart from the input as input', () => {
    const held = { ...usage, prompt_tokens_details: { cached_tokens: 100 } };
    expect(read('xai', '/v1/chat/completions', held)).toMatchObject({
      input_tokens: 110,
      cache_read_tokens: 100,
    });
  });

  it('is unknown if the model has fees that it does not report', () => {
    const answer = { model: 'gpt-4o-search-preview-2025-03-11', usage };
    expect(spendOf('openai', '/v1/chat/completions').readAnswer(answer)).toBeUndefined();
  });

  it.each(['priority', 'flex', 'scale', 'performance'])(
    'is unknown if the answer has the price of another tier: %s',
    (service_tier) => {
      const at = (tier: unknown) =>
        spendOf('openai', '/v1/chat/completions').readAnswer({ model: 'm', service_tier: tier, usage });
      expect(at(service_tier)).toBeUndefined();
      expect(at('default')).toBeDefined();
      expect(at(null)).toBeDefined();
      const held = { ...usage, service_tier };
      expect(read('mistral', '/v1/chat/completions', held)).toBeUndefined();
    },
  );

  it('of embeddings is input alone', () => {
    const embedded = spendOf('together', '/v1/embeddings').readAnswer({
      model: 'm',
      usage: { prompt_tokens: 4, total_tokens: 4 },
    });
    expect(embedded).toEqual({ model: 'm', usage: { input_tokens: 4 } });
  });
});

describe('an error', () => {
  const error = { message: 'Rate limit reached', type: 'tokens', param: null, code: 'rate_limit_exceeded' };

  it.each([
    ['openai', '/v1/chat/completions', { error }],
    ['openai', '/v1/responses', { error }],
    [
      'mistral',
      '/v1/chat/completions',
      { object: 'error', message: 'Service tier capacity exceeded', type: 'x', code: '3505' },
    ],
    [
      'mistral',
      '/v1/chat/completions',
      { detail: [{ loc: ['body'], msg: 'Field required', type: 'missing' }] },
    ],
    [
      'xai',
      '/v1/chat/completions',
      { code: 'Client specified an invalid argument', error: 'Model not found' },
    ],
    [
      'google',
      '/v1beta/openai/chat/completions',
      [{ error: { code: 400, message: 'bad', status: 'INVALID_ARGUMENT' } }],
    ],
    ['openrouter', '/api/v1/chat/completions', { error: { code: 502, message: 'Provider returned error' } }],
  ])('of the provider itself is recognised by its shape: %s %s', (provider, path, answer) => {
    expect(spendOf(provider, path).isOwnError(answer)).toBe(true);
  });

  it.each([undefined, null, '<html>', {}, [], { error: null }, { error: {} }, { status: 502 }])(
    'of an intermediary is not recognised as the provider’s: %j',
    (answer) => {
      expect(spendOf('openai', '/v1/chat/completions').isOwnError(answer)).toBe(false);
      expect(spendOf('google', '/v1beta/openai/chat/completions').isOwnError(answer)).toBe(false);
    },
  );
});
