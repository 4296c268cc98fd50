import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/index.ts';
import { readEvents, spendOf } from './openai-call.ts';

describe('usage of a stream', () => {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const counted = { input_tokens: 10, output_tokens: 5 };
  const delta = (content: string, more: JsonObject = {}) => ({
    model: 'm',
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
    ...more,
  });
  const finish = (more: JsonObject = {}) => ({
    model: 'm',
    choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    ...more,
  });

  it.each([
    [
      'openai',
      '/v1/chat/completions',
      [delta('Hi', { usage: null }), finish({ usage: null }), { model: 'm', choices: [], usage }, '[DONE]'],
    ],
    [
      'azure-openai',
      '/openai/deployments/x/chat/completions',
      [
        { choices: [], model: '', prompt_filter_results: [] },
        delta('Hi'),
        finish(),
        { model: 'm', choices: [], usage },
        '[DONE]',
      ],
    ],
    [
      'groq',
      '/openai/v1/chat/completions',
      [delta('Hi', { x_groq: { id: 'r' } }), finish({ x_groq: { id: 'r', usage } }), '[DONE]'],
    ],
    ['mistral', '/v1/chat/completions', [delta('Hi'), finish({ usage }), '[DONE]']],
    ['deepseek', '/chat/completions', [delta('Hi'), finish({ usage }), '[DONE]']],
    [
      'xai',
      '/v1/chat/completions',
      [
        delta('Hi', { usage: { ...usage, completion_tokens: 1, total_tokens: 11 } }),
        finish({ usage }),
        '[DONE]',
      ],
    ],
    ['together', '/v1/chat/completions', [delta('Hi'), finish({ usage }), '[DONE]']],
    ['fireworks', '/inference/v1/chat/completions', [delta('Hi'), finish({ usage }), '[DONE]']],
    [
      'openrouter',
      '/api/v1/chat/completions',
      [
        delta('Hi'),
        finish(),
        { model: 'm', choices: [{ index: 0, delta: { content: '' }, finish_reason: null }], usage },
        '[DONE]',
      ],
    ],
    [
      'perplexity',
      '/chat/completions',
      [
        delta('H', { usage: { ...usage, completion_tokens: 1, total_tokens: 11 } }),
        finish({ usage: { ...usage, search_context_size: 'low' } }),
      ],
    ],
    ['google', '/v1beta/openai/chat/completions', [delta('Hi'), finish({ usage }), '[DONE]']],
    [
      'openai',
      '/v1/completions',
      [
        { model: 'm', choices: [{ text: 'Hi', finish_reason: 'stop' }], usage: null },
        { model: 'm', choices: [], usage },
        '[DONE]',
      ],
    ],
  ] as const)('is the last reported usage: %s %s', (provider, path, events) => {
    expect(readEvents(provider, path, events)).toEqual({ model: 'm', usage: counted });
  });

  it.each([
    ['openai', '/v1/chat/completions'],
    ['groq', '/openai/v1/chat/completions'],
    ['perplexity', '/chat/completions'],
  ])('is unknown until the stream has ended: %s', (provider, path) => {
    const events = [delta('Hi'), finish({ usage, x_groq: { usage } }), '[DONE]'];
    const words = provider === 'perplexity' ? 2 : 3;
    for (let cut = 0; cut < words; cut++)
      expect(readEvents(provider, path, events.slice(0, cut))).toBeUndefined();
    expect(readEvents(provider, path, events)?.usage).toEqual(counted);
  });

  it.each([
    [[delta('Hi'), '[DONE]']],
    [[delta('Hi', { usage }), { error: { message: 'overloaded' } }, '[DONE]']],
    [[delta('Hi', { usage }), delta('', { error: { code: 502, message: 'x' } }), '[DONE]']],
    [[delta('Hi', { usage }), '{"choices": [', '[DONE]']],
    [['[DONE]']],
    [[delta('Hi', { usage }), finish({ usage: { ...usage, prompt_tokens: -1 } }), '[DONE]']],
  ])('is unknown if the stream broke or did not report it: %j', (events) => {
    expect(readEvents('openai', '/v1/chat/completions', events)).toBeUndefined();
  });

  it("is unknown if a chunk has an error in the vendor's own field", () => {
    const events = [delta('Hi', { usage, x_groq: { error: 'over capacity' } }), '[DONE]'];
    expect(readEvents('groq', '/openai/v1/chat/completions', events)).toBeUndefined();
  });

  it('is unknown if a stream without [DONE] reports usage only before it finishes', () => {
    expect(readEvents('perplexity', '/chat/completions', [delta('Hi', { usage }), finish()])).toBeUndefined();
  });
});

describe('an event of a stream', () => {
  const bytes = (chunk: object) => Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
  const chunk = (more: object) => ({ choices: [{ delta: { content: 'the "usage": 5 of it' } }], ...more });

  it.each([
    ['text', chunk({}), false],
    ['usage that is null, as OpenAI sends it with each chunk', chunk({ usage: null }), false],
    ['usage', chunk({ usage: { prompt_tokens: 1 } }), true],
    ['an error', { error: { message: 'overloaded' } }, true],
  ])('%s is parsed or skipped, once the model has written something', (_what, event, matters) => {
    const reader = spendOf('openai', '/v1/chat/completions').readStream?.();
    expect(reader?.matters?.(bytes(event))).toBe(true);
    reader?.event(JSON.stringify(chunk({})), undefined);
    expect(reader?.matters?.(bytes(event))).toBe(matters);
  });

  it('is parsed if it is [DONE] or a chunk that was cut off', () => {
    const reader = spendOf('openai', '/v1/chat/completions').readStream?.();
    expect(reader?.matters?.(Buffer.from('data: [DONE]\n\n'))).toBe(true);
    expect(reader?.matters?.(bytes(chunk({})).subarray(0, 40))).toBe(true);
  });
});
