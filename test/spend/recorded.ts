/** A provider's stream as sent on the wire, and the call that it answers. */
export type Recorded = {
  readonly name: string;
  readonly provider: string;
  readonly path: (model: string) => string;
  readonly body: (model: string) => object;
  readonly contentType: string;
  readonly stream: string;
  /** Events of the stream that are there only because the gateway asked for them: not passed on. */
  readonly askedFor?: string;
};

/** $0.15 and $0.60 per million tokens, for every model. */
export const PRICE = { input: 150_000, output: 600_000 };
/** The cost of every stream here: 20 tokens of input, 30 of output. */
export const COST = 21;

const data = (event: object | string) =>
  `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`;
const named = (event: { type: string }) => `event: ${event.type}\n${data(event)}`;
const said = { messages: [{ role: 'user', content: 'Hi' }] };

// https://platform.openai.com/docs/api-reference/chat-streaming
const chunk = (fields: object) => data({ id: 'c', model: 'm', ...fields });
const CHAT_USAGE = chunk({
  choices: [],
  usage: { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 },
});
const openaiChat: Recorded = {
  name: 'OpenAI chat completions',
  provider: 'openai',
  path: () => '/v1/chat/completions',
  body: (model) => ({ model, ...said, max_tokens: 100, stream: true }),
  contentType: 'text/event-stream; charset=utf-8',
  stream: [
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Hé' }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    CHAT_USAGE,
    data('[DONE]'),
  ].join(''),
  askedFor: CHAT_USAGE,
};

// https://platform.openai.com/docs/api-reference/responses-streaming
const openaiResponses: Recorded = {
  name: 'OpenAI responses',
  provider: 'openai',
  path: () => '/v1/responses',
  body: (model) => ({ model, input: 'Hi', max_output_tokens: 100, stream: true }),
  contentType: 'text/event-stream; charset=utf-8',
  stream: [
    { type: 'response.created', response: { id: 'r', status: 'in_progress', usage: null } },
    { type: 'response.output_text.delta', item_id: 'i', delta: 'Hé' },
    {
      type: 'response.completed',
      response: {
        id: 'r',
        status: 'completed',
        model: 'm',
        output: [],
        usage: { input_tokens: 20, output_tokens: 30, total_tokens: 50 },
      },
    },
  ]
    .map(named)
    .join(''),
};

// https://platform.claude.com/docs/en/build-with-claude/streaming
const anthropic: Recorded = {
  name: 'Anthropic messages',
  provider: 'anthropic',
  path: () => '/v1/messages',
  body: (model) => ({ model, ...said, max_tokens: 100, stream: true }),
  contentType: 'text/event-stream; charset=utf-8',
  stream: [
    {
      type: 'message_start',
      message: { id: 'm', type: 'message', content: [], usage: { input_tokens: 20, output_tokens: 1 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hé' } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 30 } },
    { type: 'message_stop' },
  ]
    .map(named)
    .join(''),
};

// https://ai.google.dev/api/generate-content: each chunk a whole answer, thoughts counted apart.
const geminiChunks = (
  [
    [4, undefined],
    [12, 'STOP'],
  ] as const
).map(([candidatesTokenCount, finishReason]) => ({
  candidates: [{ content: { parts: [{ text: 'Hé' }], role: 'model' }, finishReason, index: 0 }],
  usageMetadata: {
    promptTokenCount: 20,
    candidatesTokenCount,
    thoughtsTokenCount: 18,
    totalTokenCount: 38 + candidatesTokenCount,
  },
}));
const gemini = {
  provider: 'google',
  body: () => ({
    contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
    generationConfig: { maxOutputTokens: 100 },
  }),
};
const geminiEvents: Recorded = {
  ...gemini,
  name: 'Gemini as server-sent events',
  path: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
  contentType: 'text/event-stream',
  stream: geminiChunks.map((each) => `data: ${JSON.stringify(each)}\r\n\r\n`).join(''),
};
const geminiArray: Recorded = {
  ...gemini,
  name: 'Gemini as one JSON array',
  path: (model) => `/v1beta/models/${model}:streamGenerateContent`,
  contentType: 'application/json; charset=UTF-8',
  stream: `[${geminiChunks.map((each) => JSON.stringify(each)).join('\n,\r\n')}\n]`,
};

// https://docs.cohere.com/reference/chat-stream: what is billed leaves out the template.
const COHERE_USAGE = {
  billed_units: { input_tokens: 20, output_tokens: 30 },
  tokens: { input_tokens: 90, output_tokens: 30 },
};
const cohereV2: Recorded = {
  name: 'Cohere chat v2',
  provider: 'cohere',
  path: () => '/v2/chat',
  body: (model) => ({ model, ...said, max_tokens: 100, stream: true, thinking: { type: 'disabled' } }),
  contentType: 'text/event-stream',
  stream: [
    { type: 'message-start', id: 'm', delta: { message: { role: 'assistant', content: [] } } },
    { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hé' } } } },
    { type: 'message-end', delta: { finish_reason: 'COMPLETE', usage: COHERE_USAGE } },
  ]
    .map(named)
    .join(''),
};

// https://docs.cohere.com/reference/chat-stream-v1: events one a line, unless server-sent ones are asked for. That the
// model does not think is said for the sake of its price: nothing is known of a model by this name.
const cohereV1: Recorded = {
  name: 'Cohere chat v1',
  provider: 'cohere',
  path: () => '/v1/chat',
  body: (model) => ({ model, message: 'Hi', max_tokens: 100, stream: true, thinking: { type: 'disabled' } }),
  contentType: 'application/stream+json',
  stream: [
    { is_finished: false, event_type: 'stream-start', generation_id: 'g' },
    { is_finished: false, event_type: 'text-generation', text: 'Hé' },
    {
      is_finished: true,
      event_type: 'stream-end',
      response: {
        text: 'Hé',
        generation_id: 'g',
        finish_reason: 'COMPLETE',
        meta: { api_version: { version: '1' }, ...COHERE_USAGE },
      },
      finish_reason: 'COMPLETE',
    },
  ]
    .map((event) => `${JSON.stringify(event)}\n`)
    .join(''),
};

export const RECORDED: readonly Recorded[] = [
  openaiChat,
  openaiResponses,
  anthropic,
  geminiEvents,
  geminiArray,
  cohereV2,
  cohereV1,
];
