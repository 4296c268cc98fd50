import { describe, expect, it } from 'vitest';
import { costsAsListed, endpoint, streamed } from './native-call.ts';

const MESSAGES = endpoint('anthropic', '/v1/messages');

const USAGE = {
  input_tokens: 2_095,
  cache_creation_input_tokens: 2_051,
  cache_read_input_tokens: 2_051,
  cache_creation: { ephemeral_5m_input_tokens: 1_051, ephemeral_1h_input_tokens: 1_000 },
  output_tokens: 503,
  output_tokens_details: { thinking_tokens: 200 },
  server_tool_use: { web_search_requests: 2, web_fetch_requests: 1 },
  service_tier: 'standard',
  speed: 'standard',
  inference_geo: 'global',
};

const answer = (usage: object) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-6',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage,
});

const TOTAL = {
  input_tokens: 2_095 + 2_051 + 2_051,
  cache_write_tokens: 2_051,
  cache_write_1h_tokens: 1_000,
  cache_read_tokens: 2_051,
  output_tokens: 503,
  output_reasoning_tokens: 200,
  web_searches: 2,
};

describe('usage of Anthropic messages', () => {
  it('counts all documented fields, and costs what the price list computes from the answer', () => {
    const reported = MESSAGES.spend.readAnswer(answer(USAGE));
    expect(reported).toEqual({ model: 'claude-sonnet-4-6', usage: TOTAL });
    costsAsListed('anthropic', 'claude-sonnet-4-6', reported, answer(USAGE));
  });

  it.each([
    ['another tier', { service_tier: 'priority' }],
    ['fast mode', { speed: 'fast' }],
    ['one region', { inference_geo: 'us' }],
    ['code that ran', { server_tool_use: { code_execution_requests: 1 } }],
    ['a compaction', { iterations: [{ type: 'message' }, { type: 'compaction', input_tokens: 9 }] }],
    ['a negative count', { input_tokens: -1 }],
    ['a count that is not a number', { cache_read_input_tokens: '12' }],
    ['no count of output', { output_tokens: null }],
  ])('is unknown with %s, which has another price than the list', (_what, fields) => {
    expect(MESSAGES.spend.readAnswer(answer({ ...USAGE, ...fields }))?.usage).toBeUndefined();
  });

  it('treats null fields, which older models report, as absent', () => {
    const usage = {
      input_tokens: 3,
      output_tokens: 4,
      cache_creation: null,
      server_tool_use: null,
      speed: null,
    };
    expect(MESSAGES.spend.readAnswer(answer(usage))?.usage).toEqual({ input_tokens: 3, output_tokens: 4 });
  });
});

const {
  output_tokens: _output,
  output_tokens_details: _details,
  server_tool_use: _tools,
  ...AT_START
} = USAGE;

const EVENTS = [
  { type: 'message_start', message: { ...answer({ ...AT_START, output_tokens: 1 }), content: [] } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'ping' },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: {
      input_tokens: null,
      cache_read_input_tokens: null,
      output_tokens: 503,
      output_tokens_details: { thinking_tokens: 200 },
      server_tool_use: { web_search_requests: 2, web_fetch_requests: 1 },
    },
  },
  { type: 'message_stop' },
];

describe('usage of a stream of Anthropic messages', () => {
  it('is that of its start, overridden by its deltas', () => {
    expect(streamed(MESSAGES, EVENTS)).toEqual({ model: 'claude-sonnet-4-6', usage: TOTAL });
  });

  it('uses the cumulative input of a delta instead of the start’s', () => {
    const grown = EVENTS.map((event) =>
      event.type === 'message_delta'
        ? { ...event, usage: { input_tokens: 10_682, output_tokens: 510 } }
        : event,
    );
    expect(streamed(MESSAGES, grown)?.usage).toMatchObject({
      input_tokens: 10_682 + 2_051 + 2_051,
      output_tokens: 510,
    });
  });

  it('is unknown if the stream is cut anywhere before its end', () => {
    for (let cut = 0; cut < EVENTS.length; cut++) {
      expect(streamed(MESSAGES, EVENTS.slice(0, cut))).toBeUndefined();
    }
  });

  it('is unknown after an error', () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    expect(streamed(MESSAGES, [...EVENTS.slice(0, 4), error, ...EVENTS.slice(4)])).toBeUndefined();
  });

  it('is unknown if no delta reports the output', () => {
    expect(
      streamed(
        MESSAGES,
        EVENTS.filter(({ type }) => type !== 'message_delta'),
      ),
    ).toBeUndefined();
  });
});

it("Anthropic's own error is recognised by its shape", () => {
  const { isOwnError } = MESSAGES.spend;
  expect(isOwnError({ type: 'error', error: { type: 'api_error', message: 'x' }, request_id: 'r' })).toBe(
    true,
  );
  for (const page of [{ message: 'Bad Gateway' }, { error: { message: 'x' } }, 'x', null, []]) {
    expect(isOwnError(page)).toBe(false);
  }
});
