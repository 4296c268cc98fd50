import { describe } from 'vitest';
import { maps } from './apply.ts';

describe('config on APIs that follow OpenAI', () => {
  maps('openai', '/v1/chat/completions', [
    [
      'max_tokens is max_completion_tokens',
      { max_tokens: 9 },
      { max_tokens: 99, n: 1 },
      { max_completion_tokens: 9, n: 1 },
    ],
    [
      'every spelling the holder sends goes',
      { max_completion_tokens: 9 },
      { max_tokens: 1, max_completion_tokens: 2, max_output_tokens: 3 },
      { max_completion_tokens: 9 },
    ],
    [
      "the API's own name goes before a generic one",
      { max_tokens: 5, max_completion_tokens: 9 },
      {},
      { max_completion_tokens: 9 },
    ],
    ['stop_sequences is stop', { stop_sequences: ['x'] }, { stop: 'y' }, { stop: ['x'] }],
    [
      'unknown keys pass as given',
      { reasoning_effort: 'low' },
      { reasoning_effort: 'high' },
      { reasoning_effort: 'low' },
    ],
    [
      'objects merge deeply, arrays are replaced',
      { a: { b: { c: 1 }, d: [1] } },
      { a: { b: { e: 2 }, d: [2, 3], f: 4 } },
      { a: { b: { e: 2, c: 1 }, d: [1], f: 4 } },
    ],
    [
      'an object replaces an array, null an object',
      { a: { b: 1 }, c: null },
      { a: [], c: { d: 1 } },
      { a: { b: 1 }, c: null },
    ],
  ]);

  for (const [id, path] of [
    ['groq', '/openai/v1/chat/completions'],
    ['xai', '/v1/chat/completions'],
    ['openrouter', '/api/v1/chat/completions'],
    ['azure-openai', '/openai/v1/chat/completions'],
    ['azure-openai', '/openai/deployments/d/chat/completions'],
  ] as const) {
    maps(id, path, [
      [
        'the bound is max_completion_tokens',
        { max_tokens: 9 },
        { max_tokens: 99 },
        { max_completion_tokens: 9 },
      ],
    ]);
  }

  for (const [id, path] of [
    ['mistral', '/v1/chat/completions'],
    ['mistral', '/v1/fim/completions'],
    ['deepseek', '/chat/completions'],
    ['together', '/v1/chat/completions'],
    ['fireworks', '/inference/v1/chat/completions'],
    ['perplexity', '/chat/completions'],
    ['cohere', '/compatibility/v1/chat/completions'],
    ['openai', '/v1/completions'],
  ] as const) {
    maps(id, path, [
      [
        'the bound is max_tokens',
        { max_completion_tokens: 9 },
        { max_completion_tokens: 99 },
        { max_tokens: 9 },
      ],
    ]);
  }

  maps('mistral', '/v1/chat/completions', [
    ['seed is random_seed', { seed: 1 }, { random_seed: 2 }, { random_seed: 1 }],
  ]);

  maps('openrouter', '/api/v1/chat/completions', [
    [
      'models that would stand in go',
      { model: 'a/b' },
      { model: 'x/y', models: ['x/y', 'z'] },
      { model: 'a/b' },
    ],
    [
      'but those of the config stay',
      { model: 'a/b', models: ['c/d'] },
      { models: ['x/y'] },
      { model: 'a/b', models: ['c/d'] },
    ],
  ]);

  maps('openai', '/v1/responses', [
    [
      'the bound is max_output_tokens',
      { max_tokens: 9 },
      { max_output_tokens: 99, max_completion_tokens: 98 },
      { max_output_tokens: 9 },
    ],
  ]);
  maps('azure-openai', '/openai/v1/responses', [
    [
      'the model stands in the body',
      { max_tokens: 9, model: 'd' },
      { model: 'e' },
      { max_output_tokens: 9, model: 'd' },
    ],
  ]);

  maps('openai', '/v1/embeddings', [
    [
      'what shapes output is left out',
      { max_tokens: 9, temperature: 0, model: 'm', dimensions: 4 },
      { input: 'x', model: 'n' },
      { input: 'x', model: 'm', dimensions: 4 },
    ],
  ]);

  maps('google', '/v1beta/openai/chat/completions', [
    [
      'camelCase names are read too',
      { max_tokens: 9 },
      { maxCompletionTokens: 99, maxTokens: 98 },
      { max_completion_tokens: 9 },
    ],
  ]);
});
