import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/index.ts';
import { boundOf, FACTS, refusedIn } from './openai-call.ts';

describe('completions', () => {
  const path = '/v1/completions';
  const body = { model: 'gpt-3.5-turbo-instruct', prompt: 'Once' };

  it('hold every prompt, once for each candidate', () => {
    const times = (more: JsonObject) => boundOf('openai', path, { ...body, ...more }).output?.times;
    expect(times({})).toBe(1);
    expect(times({ n: 2, best_of: 5 })).toBe(5);
    expect(times({ prompt: ['a', 'b', 'c'], n: 2 })).toBe(6);
    expect(times({ prompt: [1, 2, 3] })).toBe(1);
    expect(times({ prompt: [[1, 2], [3]] })).toBe(2);
  });

  it('without a bound hold the 16 tokens that OpenAI writes by default', () => {
    expect(boundOf('openai', path, body).output).toMatchObject({ asked: 16, least: 16 });
    expect(boundOf('together', path, body).output).toMatchObject({ asked: 4_096 });
  });

  it('may each fill a window', () => {
    const facts = { ...FACTS, contextWindow: 1_000 };
    const prompt = ['x'.repeat(9_000), 'y'.repeat(9_000)];
    expect(boundOf('openai', path, { ...body, prompt }, facts).inputTokens).toBe(2_000);
  });

  it.each([
    ['openai', '/v1/completions', { prompt: { id: 1 } }, 'prompt'],
    ['openai', '/v1/completions', { prompt: ['a', 1] }, 'prompt'],
    ['openai', '/v1/completions', { tools: [] }, 'tools'],
    ['openai', '/v1/completions', { n: 0 }, 'n'],
    ['openai', '/v1/completions', { best_of: 1.5 }, 'best_of'],
    ['together', '/v1/completions', { echo: true }, 'echo'],
    ['deepseek', '/beta/completions', { best_of: 2 }, 'best_of'],
  ] as const)('are refused without a bound: %s %s %j', (provider, where, more, param) => {
    expect(refusedIn(provider, where, { ...body, ...more })).toBe(param);
  });
});

describe('embeddings', () => {
  const path = '/v1/embeddings';

  it('cost input alone, at most a window for each element', () => {
    const facts = { ...FACTS, contextWindow: 100 };
    const input = ['x'.repeat(5_000), 'y'];
    expect(boundOf('openai', path, { model: 'm', input }, facts)).toEqual({
      inputTokens: 200,
      fees: {},
      output: undefined,
    });
  });

  it.each([
    [{ input: [{ image: 'x' }] }, 'input'],
    [{ input: 'a', instruct: 'x' }, 'instruct'],
    [{ dimensions: 3 }, 'input'],
  ])('are refused with a part that has no bound: %j', (more, param) => {
    expect(refusedIn('openai', path, { model: 'm', input: undefined, ...more })).toBe(param);
  });
});
