import { describe, expect, it } from 'vitest';
import { BUILT_IN_PROVIDERS, fieldOverFixed } from '../src/index.ts';

const over = (id: string, fixed: object, config: object) => {
  const provider = BUILT_IN_PROVIDERS.get(id);
  if (!provider) throw new Error(id);
  return fieldOverFixed(provider, fixed as never, config as never);
};

describe('a config changes no setting that a policy fixes', () => {
  it.each([
    ['openai', { max_tokens: 5 }, { max_completion_tokens: 9 }, 'max_completion_tokens'],
    ['openai', { max_tokens: 5 }, { max_output_tokens: 9 }, 'max_output_tokens'],
    ['openai', { max_completion_tokens: 5 }, { max_tokens: 9 }, 'max_tokens'],
    ['openai', { max_tokens: 5 }, { Max_Tokens: 9 }, 'Max_Tokens'],
    ['openai', { max_tokens: 5 }, { 'max_to\u212aens': 9 }, 'max_to\u212aens'],
    ['openai', { model: 'small' }, { models: ['large'] }, 'models'],
    ['anthropic', { model: 'small' }, { fallbacks: ['large'] }, 'fallbacks'],
    ['google', { max_tokens: 5 }, { generationConfig: { maxOutputTokens: 9 } }, 'generationConfig'],
    ['google', { max_tokens: 5 }, { generation_config: { max_output_tokens: 9 } }, 'generation_config'],
    ['google', { max_tokens: 5 }, { GenerationConfig: { maxOutputTokens: 9 } }, 'GenerationConfig'],
    [
      'google',
      { generationConfig: { maxOutputTokens: 5 } },
      { generation_config: { maxOutputTokens: 9 } },
      'generation_config',
    ],
    ['bedrock', { max_tokens: 5 }, { inferenceConfig: { maxTokens: 9 } }, 'inferenceConfig'],
    ['cohere', { stop: ['a'] }, { stop_sequences: ['b'] }, 'stop_sequences'],
    ['openai', { max_tokens: 5 }, { temperature: 1, stop: 'z', metadata: { max: 1 } }, undefined],
    ['google', { max_tokens: 5 }, { generationConfig: { topK: 1 } }, undefined],
  ])('%s: %j against %j: %s', (id, fixed, config, field) => {
    expect(over(id, fixed, config)).toBe(field);
  });

  it('compares a name of many combining marks in time that grows with its length', () => {
    const name = `max_tokens${'\u0315\u0316'.repeat(200_000)}`;
    expect(over('openai', { max_tokens: 5 }, { [name]: 9 })).toBeUndefined();
    expect(over('openai', { [name]: 5 }, { max_tokens: 9 })).toBeUndefined();
    expect(over('openai', { max_tokens: 5 }, { [`${' '.repeat(1_000)}MAX_tokens`]: 9 })).toBeDefined();
  });
});
