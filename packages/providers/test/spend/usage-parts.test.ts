import { describe, expect, test } from 'vitest';
import { endpoint, streamed } from './native-call.ts';

const chat = (usage: object) => ({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 1, ...usage },
});
const response = (usage: object) => ({
  ...{ status: 'completed', output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }] },
  usage: { input_tokens: 10, output_tokens: 1, ...usage },
});
const message = (usage: object, content: readonly object[] = []) => ({
  ...{ type: 'message', model: 'claude-x', content: [{ type: 'text', text: 'Hi' }, ...content] },
  usage: { input_tokens: 10, output_tokens: 1, ...usage },
});
const gemini = (usage: object) => ({
  candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 1, ...usage },
});
const converse = (usage: object) => ({
  output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } },
  usage: { inputTokens: 10, outputTokens: 1, ...usage },
});
const picture = (usage: object) => ({
  data: [{ b64_json: 'AA' }],
  usage: { input_tokens: 10, output_tokens: 1, ...usage },
});
const vectors = (usage: object) => ({ data: [{ embedding: [1] }], usage: { prompt_tokens: 10, ...usage } });
const detail = (modality: string, tokenCount: unknown) => ({ modality, tokenCount });

type Place = readonly [provider: string, path: string];

const CHAT: Place = ['openai', '/v1/chat/completions'];
const XAI: Place = ['xai', '/v1/chat/completions'];
const DEEPSEEK: Place = ['deepseek', '/chat/completions'];
const RESPONSES: Place = ['openai', '/v1/responses'];
const IMAGES: Place = ['openai', '/v1/images/generations'];
const EMBEDDINGS: Place = ['openai', '/v1/embeddings'];
const MESSAGES: Place = ['anthropic', '/v1/messages'];
const GEMINI: Place = ['google', '/v1beta/models/gemini-x:generateContent'];
const CONVERSE: Place = ['bedrock', '/model/x/converse'];

type Row = readonly [of: Place, answer: object, counts: { readonly [unit: string]: number }];

/** Answers that state 10 tokens of input and 1 of output, and parts that are more. */
const TOO_SMALL: readonly Row[] = [
  [CHAT, chat({ prompt_tokens_details: { text_tokens: 5_000 } }), { input_tokens: 5_000 }],
  [CHAT, chat({ prompt_tokens_details: { text_tokens: 20, image_tokens: 30 } }), { input_tokens: 50 }],
  [CHAT, chat({ completion_tokens_details: { text_tokens: 500 } }), { output_tokens: 500 }],
  [
    CHAT,
    chat({ completion_tokens_details: { accepted_prediction_tokens: 5, rejected_prediction_tokens: 40 } }),
    { output_tokens: 45 },
  ],
  [XAI, chat({ prompt_tokens_details: { text_tokens: 5_000 } }), { input_tokens: 5_000 }],
  [
    DEEPSEEK,
    chat({ prompt_cache_hit_tokens: 100, prompt_cache_miss_tokens: 900 }),
    { input_tokens: 1_000, cache_read_tokens: 100 },
  ],
  [RESPONSES, response({ input_tokens_details: { text_tokens: 5_000 } }), { input_tokens: 5_000 }],
  [RESPONSES, response({ output_tokens_details: { text_tokens: 500 } }), { output_tokens: 500 }],
  [IMAGES, picture({ input_tokens_details: { text_tokens: 5_000 } }), { input_tokens: 5_000 }],
  [IMAGES, picture({ output_tokens_details: { image_tokens: 4_160 } }), { output_tokens: 4_160 }],
  [EMBEDDINGS, vectors({ total_tokens: 5_000 }), { input_tokens: 5_000 }],
  [
    MESSAGES,
    message({ cache_creation: { ephemeral_5m_input_tokens: 4_000, ephemeral_1h_input_tokens: 1_000 } }),
    { input_tokens: 5_010, cache_write_tokens: 5_000, cache_write_1h_tokens: 1_000 },
  ],
  [MESSAGES, message({ output_tokens_details: { thinking_tokens: 500 } }), { output_tokens: 500 }],
  [
    MESSAGES,
    message({
      iterations: [
        { type: 'message', input_tokens: 3_000, output_tokens: 20 },
        { type: 'message', input_tokens: 2_000, output_tokens: 30 },
      ],
    }),
    { input_tokens: 5_000, output_tokens: 50 },
  ],
  [
    MESSAGES,
    message({}, [
      { type: 'web_search_tool_result', content: [] },
      { type: 'web_search_tool_result', content: { type: 'web_search_tool_result_error' } },
    ]),
    { input_tokens: 10, web_searches: 1 },
  ],
  [GEMINI, gemini({ promptTokensDetails: [detail('TEXT', 5_000)] }), { input_tokens: 5_000 }],
  [
    GEMINI,
    gemini({ promptTokensDetails: [detail('TEXT', 20), detail('IMAGE', 258)] }),
    { input_tokens: 278, input_image_tokens: 258 },
  ],
  [GEMINI, gemini({ toolUsePromptTokensDetails: [detail('TEXT', 90)] }), { input_tokens: 100 }],
  [
    GEMINI,
    gemini({ candidatesTokensDetails: [detail('TEXT', 500)], thoughtsTokenCount: 7 }),
    { output_tokens: 507 },
  ],
  [
    CONVERSE,
    converse({
      cacheDetails: [
        { ttl: '5m', inputTokens: 4_000 },
        { ttl: '1h', inputTokens: 1_000 },
      ],
    }),
    { input_tokens: 5_010, cache_write_tokens: 5_000, cache_write_1h_tokens: 1_000 },
  ],
];

describe('a count that is smaller than the sum of its parts', () => {
  test.each(TOO_SMALL)(
    'is replaced by that sum, and reported as a contradiction: %j, %j',
    (of, answer, counts) => {
      const reported = endpoint(...of).spend.readAnswer(answer);
      expect(reported?.usage).toMatchObject(counts);
      expect(reported?.doubt).toEqual({ why: 'parts' });
    },
  );

  test('is treated the same in streams', () => {
    const search = { type: 'web_search_tool_result', tool_use_id: 't', content: [] };
    const events = (...blocks: readonly object[]) => [
      {
        type: 'message_start',
        message: { type: 'message', model: 'c', usage: { input_tokens: 10, output_tokens: 1 } },
      },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hi' } },
      ...blocks.map((content_block, index) => ({ type: 'content_block_start', index, content_block })),
      { type: 'message_delta', usage: { output_tokens: 20 } },
      { type: 'message_stop' },
    ];
    const reported = streamed(endpoint(...MESSAGES), events(search, search));
    expect(reported?.usage).toMatchObject({ input_tokens: 10, output_tokens: 20, web_searches: 2 });
    expect(reported?.doubt).toEqual({ why: 'parts' });
    expect(streamed(endpoint(...MESSAGES), events())?.doubt).toBeUndefined();
  });
});

/** Parts that are within their whole, as vendors state them. */
const WHOLE: readonly Row[] = [
  [
    CHAT,
    chat({ prompt_tokens_details: { text_tokens: 6, image_tokens: 4, cached_tokens: 4 } }),
    { input_tokens: 10 },
  ],
  [XAI, chat({ completion_tokens_details: { reasoning_tokens: 40, text_tokens: 1 } }), { output_tokens: 41 }],
  [
    MESSAGES,
    message({ cache_creation_input_tokens: 5, cache_creation: { ephemeral_5m_input_tokens: 5 } }),
    { input_tokens: 15 },
  ],
  [
    MESSAGES,
    message({ server_tool_use: { web_search_requests: 1 } }, [
      { type: 'web_search_tool_result', content: [] },
    ]),
    { web_searches: 1 },
  ],
  [
    GEMINI,
    gemini({ promptTokensDetails: [detail('TEXT', 10)], cachedContentTokenCount: 4 }),
    { input_tokens: 10 },
  ],
  [
    CONVERSE,
    converse({ cacheWriteInputTokens: 5, cacheDetails: [{ ttl: '5m', inputTokens: 5 }] }),
    { input_tokens: 15 },
  ],
  [EMBEDDINGS, vectors({ total_tokens: 10 }), { input_tokens: 10 }],
];

test.each(WHOLE)('parts within their total are not a contradiction: %j, %j', (of, answer, counts) => {
  const reported = endpoint(...of).spend.readAnswer(answer);
  expect(reported?.usage).toMatchObject(counts);
  expect(reported?.doubt).toBeUndefined();
});

test.each<readonly [Place, object]>([
  [GEMINI, gemini({ promptTokensDetails: [detail('TEXT', '5000')] })],
  [CHAT, chat({ prompt_tokens_details: { text_tokens: -1 } })],
  [MESSAGES, message({ iterations: [{ type: 'message', input_tokens: 0.5, output_tokens: 1 }] })],
])('a part that is no count makes the usage unknown: %j, %j', (of, answer) => {
  expect(endpoint(...of).spend.readAnswer(answer)?.usage).toBeUndefined();
});

test.each([
  [
    'a total that is more than its parts',
    CONVERSE,
    converse({ totalTokens: 5_000 }),
    { output_tokens: 4_990 },
  ],
  ['a total of pictures', IMAGES, picture({ total_tokens: 5_000 }), { output_tokens: 4_990 }],
  [
    'another name of a count',
    CONVERSE,
    converse({ cacheReadInputTokenCount: 5_000, cacheWriteInputTokenCount: 400 }),
    { input_tokens: 5_410, cache_read_tokens: 5_000, cache_write_tokens: 400 },
  ],
])('%s counts', (_what, of, answer, counts) => {
  expect(endpoint(...of).spend.readAnswer(answer)?.usage).toMatchObject(counts);
});

test.each<readonly [Place, object, readonly string[]]>([
  [EMBEDDINGS, vectors({ completion_tokens: 5 }), ['completion_tokens']],
  [CHAT, chat({ fee: '0.05' }), ['fee']],
  [CHAT, chat({ fee: '1e-2' }), ['fee']],
])('a count that no dialect knows makes the usage unknown: %j, %j', (of, answer, names) => {
  expect(endpoint(...of).spend.readAnswer(answer)?.doubt).toEqual({ why: 'unknown', names });
});

test.each(['0', '0.00', '', 'eu', '2026-11-27', '1.2.3'])('the text %j is not an amount', (text) => {
  expect(endpoint(...CHAT).spend.readAnswer(chat({ note: text }))?.doubt).toBeUndefined();
});
