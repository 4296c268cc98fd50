import { describe } from 'vitest';
import { maps } from './apply.ts';

const GENERATION = {
  maxOutputTokens: 9,
  temperature: 0,
  topP: 0.5,
  topK: 3,
  stopSequences: ['x'],
  candidateCount: 1,
  seed: 7,
  presencePenalty: 1,
  frequencyPenalty: 2,
};

const GENERIC = {
  max_tokens: 9,
  temperature: 0,
  top_p: 0.5,
  top_k: 3,
  stop: 'x',
  n: 1,
  seed: 7,
  presence_penalty: 1,
  frequency_penalty: 2,
};

const SNAKE = {
  max_output_tokens: 99,
  temperature: 1,
  top_p: 1,
  top_k: 99,
  stop_sequences: ['y'],
  candidate_count: 8,
  seed: 8,
  presence_penalty: 0,
  frequency_penalty: 0,
};

describe('config on Gemini', () => {
  for (const method of ['generateContent', 'streamGenerateContent']) {
    maps('google', `/v1beta/models/gemini-2.5-flash:${method}`, [
      ['every generic name is mapped', GENERIC, {}, { generationConfig: GENERATION }],
      [
        'over camelCase',
        GENERIC,
        { generationConfig: { ...GENERATION, topK: 99 } },
        { generationConfig: GENERATION },
      ],
      ['over snake_case', GENERIC, { generation_config: SNAKE }, { generationConfig: GENERATION }],
      [
        'over both at once, keeping what it does not set',
        { max_tokens: 9 },
        { generation_config: { max_output_tokens: 99, top_k: 1 }, generationConfig: { maxOutputTokens: 98 } },
        { generationConfig: { top_k: 1, maxOutputTokens: 9 } },
      ],
    ]);
  }

  maps('google', '/v1/models/g:generateContent', [
    [
      "the API's own shape is merged deeply, whatever the spelling",
      { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
      { generation_config: { thinking_config: { thinking_budget: 9, include_thoughts: true } } },
      { generationConfig: { thinkingConfig: { include_thoughts: true, thinkingBudget: 0 } } },
    ],
    [
      "the API's own shape goes before a generic name",
      { generation_config: { max_output_tokens: 9 }, max_tokens: 5 },
      {},
      { generation_config: { max_output_tokens: 9 } },
    ],
    [
      'what is no object is replaced',
      { max_tokens: 9 },
      { generationConfig: [1], generation_config: 'x' },
      { generationConfig: { maxOutputTokens: 9 } },
    ],
    [
      'other fields are one under both spellings',
      { safetySettings: [], systemInstruction: { parts: [1] } },
      { safety_settings: [2], system_instruction: { parts: [3] } },
      { safetySettings: [], systemInstruction: { parts: [1] } },
    ],
    [
      "names in a schema are the caller's own",
      { generationConfig: { responseJsonSchema: { properties: { first_name: 1 } } } },
      { generationConfig: { responseJsonSchema: { properties: { firstName: 2 } } } },
      { generationConfig: { responseJsonSchema: { properties: { firstName: 2, first_name: 1 } } } },
    ],
  ]);

  for (const method of ['countTokens', 'embedContent', 'batchEmbedContents']) {
    maps('google', `/v1beta/models/g:${method}`, [
      ['what shapes output is left out', GENERIC, { contents: [] }, { contents: [] }],
    ]);
  }
});
