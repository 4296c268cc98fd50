import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/index.ts';
import { boundOf, CHAT, chatBody, FACTS, judged, refusedIn, spendOf } from './openai-call.ts';

const OPENAI = ['openai', '/v1/chat/completions'] as const;
const user = (...content: unknown[]): JsonObject => chatBody({ messages: [{ role: 'user', content }] });
const WINDOW = 128_000;

describe.each(CHAT)('chat completions at %s %s', (provider, path) => {
  it('refuse a field that is not known, and name it', () => {
    expect(refusedIn(provider, path, chatBody({ temperature: 1, top_p: 0.5, stop: ['x'] }))).toBeUndefined();
    expect(refusedIn(provider, path, chatBody({ fancy_mode: null }))).toBe('fancy_mode');
    expect(refusedIn(provider, path, chatBody({ Stream: true }))).toBe('Stream');
  });

  it('refuse a field that only a prototype has', () => {
    expect(refusedIn(provider, path, chatBody({ constructor: 1 }))).toBe('constructor');
    expect(refusedIn(provider, path, JSON.parse('{"model": "gpt-4o", "messages": [], "__proto__": 1}'))).toBe(
      '__proto__',
    );
  });

  it('refuse tools that are not the caller’s own', () => {
    const own = { type: 'function', function: { name: 'f', parameters: {} } };
    expect(refusedIn(provider, path, chatBody({ tools: [own] }))).toBeUndefined();
    expect(refusedIn(provider, path, chatBody({ tools: [own, { type: 'web_search' }] }))).toBe(
      'tools[1].type',
    );
    expect(refusedIn(provider, path, chatBody({ tools: {} }))).toBe('tools');
  });

  it('refuse searches, predictions, audio and other tiers left in', () => {
    for (const [field, value] of [
      ['prediction', { type: 'content', content: 'x' }],
      ['audio', { voice: 'ash', format: 'wav' }],
      ['modalities', ['text', 'audio']],
    ] as const) {
      expect(refusedIn(provider, path, chatBody({ [field]: value }))).toBe(field);
      expect(refusedIn(provider, path, chatBody({ [field]: null }))).toBeUndefined();
    }
    const search = { search_type: 'pro' };
    expect(refusedIn(provider, path, chatBody({ web_search_options: search }))).toMatch(
      /^web_search_options/,
    );
    const asSent = spendOf(provider, path).bound(chatBody({ service_tier: 'priority' }), {
      path,
      bytes: 99,
      facts: FACTS,
    });
    expect(asSent).toMatchObject({ unbounded: { param: 'service_tier' } });
    expect(refusedIn(provider, path, chatBody({ service_tier: 'priority' }))).toBeUndefined();
  });

  it('refuse audio and unknown content in a message', () => {
    expect(
      refusedIn(provider, path, user({ type: 'input_audio', input_audio: { data: '', format: 'mp3' } })),
    ).toBe('messages[0].content[0]');
    expect(refusedIn(provider, path, user({ type: 'text', text: 'a' }, { type: 'hologram' }))).toBe(
      'messages[0].content[1].type',
    );
    expect(refusedIn(provider, path, user({ type: 'text', text: 'a', cache_control: {} }))).toBe(
      'messages[0].content[0].cache_control',
    );
    expect(refusedIn(provider, path, chatBody({ messages: 'Hi' }))).toBe('messages');
    expect(refusedIn(provider, path, chatBody({ messages: ['Hi'] }))).toBe('messages[0]');
  });

  it('refuse a body whose nesting would exhaust the stack', () => {
    let deep: unknown = {};
    for (let i = 0; i < 100_000; i++) deep = [deep];
    const judgedDeep = spendOf(provider, path).bound(chatBody({ response_format: deep }), {
      path,
      bytes: 10 ** 6,
      facts: FACTS,
    });
    expect(judgedDeep).toMatchObject({ unbounded: { param: 'body' } });
  });
});

describe('images', () => {
  const image = (url: string, detail?: string): JsonObject =>
    user({ type: 'image_url', image_url: { url, detail } });
  const data = `data:image/png;base64,${'A'.repeat(400_000)}`;

  it('count as the published maximum, and their bytes do not count', () => {
    const text = boundOf(...OPENAI, chatBody()).inputTokens;
    const one = boundOf(...OPENAI, image(data)).inputTokens;
    expect(one - text).toBeGreaterThanOrEqual(85 + 8 * 170);
    expect(one - text).toBeLessThan(85 + 8 * 170 + 100);
    const dated = boundOf(...OPENAI, { ...image(data), model: 'gpt-4o-2024-08-06' }).inputTokens;
    expect(dated).toBeLessThan(2_000);
  });

  it('count as the whole window where no maximum is published', () => {
    expect(boundOf(...OPENAI, image('https://x.example/a.png', 'original')).inputTokens).toBe(WINDOW);
    expect(boundOf(...OPENAI, { ...image(data), model: 'gpt-5.9' }).inputTokens).toBe(WINDOW);
    expect(boundOf('groq', '/openai/v1/chat/completions', image(data)).inputTokens).toBe(WINDOW);
  });

  it('have no bound where the window is not known either', () => {
    const facts = { ...FACTS, contextWindow: undefined };
    expect(refusedIn(...OPENAI, { ...image(data), model: 'gpt-5.9' }, facts)).toBe('model');
    expect(refusedIn(...OPENAI, image(data), facts)).toBeUndefined();
  });

  it('do not take text for an image’s bytes', () => {
    const disguised = boundOf(...OPENAI, image(`data:image/png;base64,${'你 '.repeat(10_000)}`)).inputTokens;
    expect(disguised).toBeGreaterThan(40_000);
  });
});

describe('models that use tools by themselves', () => {
  it.each([
    ['openai', '/v1/chat/completions', 'gpt-4o-search-preview'],
    ['openai', '/v1/responses', 'o3-deep-research-2025-06-26'],
    ['groq', '/openai/v1/chat/completions', 'groq/compound-mini'],
    ['xai', '/v1/chat/completions', 'grok-4.20-multi-agent'],
    ['openrouter', '/api/v1/chat/completions', 'openai/gpt-4o:online'],
    ['openrouter', '/api/v1/chat/completions', 'openrouter/auto'],
    ['perplexity', '/chat/completions', 'sonar-deep-research'],
  ])('are refused: %s %s %s', (provider, path, model) => {
    expect(
      refusedIn(provider, path, { ...(path.endsWith('responses') ? { input: 'Hi' } : chatBody()), model }),
    ).toBe('model');
  });
});

describe('fields of one provider', () => {
  it.each([
    ['mistral', '/v1/chat/completions', { prompt_mode: 'reasoning' }],
    ['mistral', '/v1/chat/completions', { safe_prompt: true }],
    ['together', '/v1/chat/completions', { chat_template_kwargs: { enable_thinking: true } }],
    ['groq', '/openai/v1/chat/completions', { documents: [{ source: { type: 'text', text: 'x' } }] }],
    ['perplexity', '/chat/completions', {}],
  ] as const)('that bring hidden input count as the whole window: %s %s %j', (provider, path, more) => {
    expect(boundOf(provider, path, chatBody(more)).inputTokens).toBe(WINDOW);
  });

  it.each([
    ['openrouter', '/api/v1/chat/completions', { provider: { order: ['x'] } }, 'provider'],
    ['openrouter', '/api/v1/chat/completions', { models: ['a', 'b'] }, 'models'],
    ['openrouter', '/api/v1/chat/completions', { plugins: [{ id: 'web' }] }, 'plugins'],
    ['xai', '/v1/chat/completions', { search_parameters: { mode: 'auto' } }, 'search_parameters'],
    ['xai', '/v1/chat/completions', { deferred: true }, 'deferred'],
    ['together', '/v1/chat/completions', { safety_model: 'guard' }, 'safety_model'],
    ['fireworks', '/inference/v1/chat/completions', { speculation: 'x' }, 'speculation'],
    [
      'perplexity',
      '/chat/completions',
      { web_search_options: { search_type: 'pro' } },
      'web_search_options.search_type',
    ],
    ['perplexity', '/chat/completions', { stream_mode: 'concise' }, 'stream_mode'],
    ['google', '/v1beta/openai/chat/completions', { extra_body: {} }, 'extra_body'],
    ['google', '/v1beta/openai/chat/completions', { maxTokens: 9 }, 'maxTokens'],
    ['deepseek', '/chat/completions', { top_k: 9 }, 'top_k'],
  ] as const)('that change the price are refused: %s %s %j', (provider, path, more, param) => {
    expect(refusedIn(provider, path, chatBody(more))).toBe(param);
  });

  it('say whether the output’s bound covers reasoning', () => {
    const covers = (provider: string, path: string, model: string) =>
      boundOf(provider, path, chatBody({ model })).output?.coversReasoning;
    expect(covers(...OPENAI, 'o3')).toBe(true);
    expect(covers('xai', '/v1/chat/completions', 'grok-4.5')).toBe(false);
    expect(covers('xai', '/v1/chat/completions', 'grok-4-fast-non-reasoning')).toBe(true);
    expect(covers('openrouter', '/api/v1/chat/completions', 'openai/gpt-4o')).toBe(false);
  });
});

describe('endpoints without a known bound', () => {
  it.each([
    ['mistral', '/v1/agents/completions'],
    ['mistral', '/v1/responses'],
    ['perplexity', '/v1/agent'],
    ['cohere', '/compatibility/v1/chat/completions'],
  ])('have none: %s %s', (provider, path) => {
    expect(() => spendOf(provider, path)).toThrow('nothing may be spent');
  });
});

it('the price of an Azure call follows its deployment', () => {
  const path = '/openai/deployments/my%20gpt/chat/completions';
  expect(spendOf('azure-openai', path).model({ model: 'other' }, path)).toBe('my gpt');
  expect(spendOf(...OPENAI).model({ model: 'gpt-4o' }, OPENAI[1])).toBe('gpt-4o');
  expect(spendOf(...OPENAI).model({ model: 7 }, OPENAI[1])).toBeUndefined();
});

it('bounding a call does not change it', () => {
  const body = chatBody({
    max_tokens: 5,
    service_tier: 'flex',
    stream: true,
    stream_options: { include_usage: false },
  });
  const before = structuredClone(body);
  for (const [provider, path] of CHAT) {
    const spend = spendOf(provider, path);
    judged(provider, path, body);
    spend.withOutputBound?.(body, 7);
    spend.askUsage?.(body);
    expect(body).toEqual(before);
  }
});
