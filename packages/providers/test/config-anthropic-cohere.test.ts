import { describe } from 'vitest';
import { maps } from './apply.ts';

describe('config on Anthropic', () => {
  for (const [id, path] of [
    ['anthropic', '/v1/messages'],
    ['deepseek', '/anthropic/v1/messages'],
    ['openrouter', '/api/v1/messages'],
  ] as const) {
    maps(id, path, [
      [
        'names are mapped and one stop becomes a list',
        { max_completion_tokens: 9, stop: 'x', top_k: 1 },
        { max_tokens: 99, stop_sequences: ['y'] },
        { max_tokens: 9, stop_sequences: ['x'], top_k: 1 },
      ],
      [
        'models that would stand in go',
        { model: 'm' },
        { model: 'o', fallbacks: [{ model: 'o' }] },
        { model: 'm' },
      ],
    ]);
  }

  maps('anthropic', '/v1/messages/count_tokens', [
    ['a token count gets no bound', { max_tokens: 9, stop: 'x', model: 'm' }, { model: 'o' }, { model: 'm' }],
  ]);
});

describe('config on Cohere', () => {
  for (const path of ['/v1/chat', '/v2/chat']) {
    maps('cohere', path, [
      [
        'generic names are mapped',
        { max_output_tokens: 9, top_p: 0.5, top_k: 3, stop: 'x' },
        { max_tokens: 99, p: 0.9, k: 100, stop_sequences: ['y'] },
        { max_tokens: 9, p: 0.5, k: 3, stop_sequences: ['x'] },
      ],
      [
        'its own names stay',
        { p: 0.5, k: 3, stop_sequences: ['x'] },
        { p: 1, k: 9 },
        { p: 0.5, k: 3, stop_sequences: ['x'] },
      ],
    ]);
  }

  maps('cohere', '/v2/embed', [
    [
      'what shapes output is left out',
      { max_tokens: 9, truncate: 'END' },
      { truncate: 'NONE' },
      { truncate: 'END' },
    ],
  ]);
  maps('cohere', '/v2/rerank', [
    ['what shapes output is left out', { temperature: 1, top_n: 2 }, { top_n: 9 }, { top_n: 2 }],
  ]);
});
