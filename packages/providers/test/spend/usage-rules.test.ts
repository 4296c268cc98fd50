import { describe, expect, test } from 'vitest';
import { BUILT_IN_PROVIDERS, type RequestFacts } from '../../src/index.ts';
import { endpoint } from './native-call.ts';
import { SHAPES, type Shape } from './usage-shapes.ts';

const spendOf = ({ provider, path }: Shape) => endpoint(provider, path).spend;

/** The usage of a stream of these statements: the same whether all events are read, or only those that matter. */
function streamed(shape: Shape, ...[statements, content, request]: Streamed) {
  const [all, few] = [spendOf(shape).readStream?.(request), spendOf(shape).readStream?.(request)];
  for (const { name, data } of shape.stream?.(statements, content) ?? []) {
    const text = typeof data === 'string' ? data : JSON.stringify(data);
    all?.event(text, name);
    if (few?.matters?.(Buffer.from(`data: ${text}\n\n`)) ?? true) few?.event(text, name);
  }
  expect(few?.end()).toEqual(all?.end());
  return all?.end();
}

type Streamed = [
  statements: readonly (readonly [number | undefined, number | undefined])[],
  content: boolean,
  request?: RequestFacts,
];

const STREAMING = SHAPES.filter(({ stream }) => stream !== undefined);
const WRITING = SHAPES.filter(({ isInputOnly }) => !isInputOnly);
const RESTATING = STREAMING.filter(({ statesOnce }) => !statesOnce);
const counts = (usage: { readonly [unit: string]: number } | undefined) =>
  usage && [usage.input_tokens, usage.output_tokens];

test('the table has every vendor', () => {
  expect(new Set(SHAPES.map(({ provider }) => provider))).toEqual(new Set(BUILT_IN_PROVIDERS.keys()));
});

describe.each(WRITING)('$name', (shape) => {
  test('usage of an answer with content is accepted', () => {
    expect(counts(spendOf(shape).readAnswer(shape.answer(1_000, 20, true))?.usage)).toEqual([1_000, 20]);
  });

  test.each([
    ['no_output', 1_000, 0],
    ['no_input', 0, 20],
    ['no_output', 0, 0],
  ] as const)('an answer with content cannot have %s: %i, %i', (why, input, output) => {
    const answered = spendOf(shape).readAnswer(shape.answer(input, output, true));
    expect(answered?.usage).toBeUndefined();
    expect(answered?.doubt?.why).toBe(why);
  });

  test('output without input is rejected, even if the output is not visible', () => {
    expect(spendOf(shape).readAnswer(shape.answer(0, 20, false))?.usage).toBeUndefined();
  });

  test('an answer without content may have all counts zero', () => {
    expect(counts(spendOf(shape).readAnswer(shape.answer(0, 0, false))?.usage)).toEqual([0, 0]);
  });
});

describe.each(SHAPES.filter(({ isInputOnly }) => isInputOnly))('$name', (shape) => {
  test('a result cannot cost nothing', () => {
    const { readAnswer } = spendOf(shape);
    expect(readAnswer(shape.answer(0, undefined, true))?.usage).toBeUndefined();
    expect(readAnswer(shape.answer(0, undefined, true))?.doubt).toEqual({ why: 'no_input' });
    expect(readAnswer(shape.answer(7, undefined, true))?.doubt).toBeUndefined();
    expect(Object.values(readAnswer(shape.answer(7, undefined, true))?.usage ?? {})).toContain(7);
    expect(readAnswer(shape.answer(0, undefined, false))?.doubt).toBeUndefined();
  });
});

describe.each(STREAMING)('a stream of $name', (shape) => {
  test.each([
    ['no_output', 1_000, 0],
    ['no_input', 0, 20],
    ['no_output', 0, 0],
  ] as const)('with content cannot have %s: %i, %i', (why, input, output) => {
    const reported = streamed(shape, [[input, output]], true);
    expect(reported?.usage).toBeUndefined();
    expect(reported?.doubt?.why).toBe(why);
  });

  test('with other usage is accepted', () => {
    expect(counts(streamed(shape, [[1_000, 20]], true)?.usage)).toEqual([1_000, 20]);
    expect(counts(streamed(shape, [[0, 0]], false)?.usage)).toEqual([0, 0]);
  });

  test('that repeats its prompt may have no output', () => {
    const echoes = { echoes: true };
    expect(counts(streamed(shape, [[1_000, 0]], true, echoes)?.usage)).toEqual([1_000, 0]);
    expect(streamed(shape, [[0, 0]], true, echoes)?.usage).toBeUndefined();
  });
});

describe.each(RESTATING)('a stream of $name with two usage reports', (shape) => {
  test.each([
    [
      [1_000, 20],
      [1_000, 19],
    ],
    [
      [1_000, 20],
      [999, 20],
    ],
    [
      [1_000, 20],
      [1, 30],
    ],
    [
      [1_000, 20],
      [1_000, 0],
    ],
  ] as const)('is rejected if a count falls: %j, %j', (first, last) => {
    const reported = streamed(shape, [first, last], true);
    expect(reported?.usage).toBeUndefined();
    expect(reported?.doubt).toEqual({ why: 'falls' });
  });

  test.each([
    [
      [1_000, 20],
      [0, 0],
    ],
    [
      [1_000, 1],
      [0, 20],
    ],
  ] as const)('is charged no less than its earlier report: %j, %j', (first, last) => {
    const reported = streamed(shape, [first, last], true);
    expect(reported?.doubt).toEqual({ why: 'falls' });
    // Only a delta of Anthropic's API may state 0 for an input that it does not restate.
    const isDelta = shape.zeroInputInDeltas && last[1] > 0;
    expect(counts(reported?.usage)).toEqual(isDelta ? [1_000, 20] : undefined);
  });

  test.each([
    [
      [1_000, 1],
      [1_000, 20],
      [1_000, 20],
    ],
    [
      [10, 1],
      [1_000, 20],
      [1_000, 20],
    ],
    [
      [0, 0],
      [1_000, 20],
      [1_000, 20],
    ],
    [
      [1_000, 20],
      [1_000, 20],
      [1_000, 20],
    ],
  ] as const)('is charged the larger report, never the sum: %j, %j', (first, last, larger) => {
    expect(streamed(shape, [first, last], true)?.doubt).toBeUndefined();
    expect(counts(streamed(shape, [first, last], true)?.usage)).toEqual(larger);
  });
});

describe('cache counts', () => {
  const { spend } = endpoint('anthropic', '/v1/messages');
  const read = (start: object, delta: object) => {
    const reader = spend.readStream?.();
    const events = [
      { type: 'message_start', message: { type: 'message', model: 'claude-x', usage: start } },
      { type: 'content_block_delta', delta: { type: 'text_delta', text: 'Hi' } },
      { type: 'message_delta', usage: delta },
      { type: 'message_stop' },
    ];
    for (const event of events) reader?.event(JSON.stringify(event), undefined);
    return reader?.end();
  };
  const START = {
    input_tokens: 100,
    cache_read_input_tokens: 4_000,
    cache_creation_input_tokens: 900,
    output_tokens: 1,
  };

  test('that a delta resets to zero together with the input keep their value, and are a contradiction', () => {
    const zeroed = {
      input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      output_tokens: 20,
    };
    expect(read(START, zeroed)).toMatchObject({
      usage: { input_tokens: 5_000, cache_read_tokens: 4_000, cache_write_tokens: 900, output_tokens: 20 },
      doubt: { why: 'falls' },
    });
  });

  test('may be split from an input that was first reported as one number', () => {
    const split = {
      input_tokens: 100,
      cache_read_input_tokens: 4_900,
      cache_creation_input_tokens: 0,
      output_tokens: 20,
    };
    expect(read({ input_tokens: 5_000, output_tokens: 0 }, split)).toMatchObject({
      usage: { input_tokens: 5_000, cache_read_tokens: 4_900, output_tokens: 20 },
    });
  });

  test('that fall while the input does not are a contradiction', () => {
    const fallen = {
      input_tokens: 4_100,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 900,
      output_tokens: 20,
    };
    expect(read(START, fallen)).toMatchObject({ usage: undefined, doubt: { why: 'falls' } });
  });

  test('are input: an answer with only cached input is accepted', () => {
    const cached = { input_tokens: 0, cache_read_input_tokens: 4_000, output_tokens: 20 };
    const message = {
      type: 'message',
      model: 'claude-x',
      content: [{ type: 'text', text: 'Hi' }],
      usage: cached,
    };
    expect(counts(spend.readAnswer(message)?.usage)).toEqual([4_000, 20]);
  });
});

describe('content', () => {
  const chat = endpoint('openai', '/v1/chat/completions').spend;
  const doubtOf = (message: object) =>
    chat.readAnswer({
      choices: [{ message: { role: 'assistant', content: null, ...message } }],
      usage: { prompt_tokens: 10, completion_tokens: 0 },
    })?.doubt?.why;

  test.each([
    { content: 'Hi' },
    { content: [{ type: 'text', text: 'Hi' }] },
    { reasoning_content: 'Hm' },
    { reasoning_details: [{ type: 'reasoning.text', text: 'Hm' }] },
    { tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '' } }] },
    { function_call: { name: 'f', arguments: '{}' } },
    { audio: { id: 'a', data: 'AAAA' } },
  ])('includes text that the model wrote: %j', (message) => {
    expect(doubtOf(message)).toBe('no_output');
  });

  test.each([
    { content: '' },
    { content: [] },
    { content: [{ type: 'text', text: '' }] },
    { refusal: 'No.' },
    { tool_calls: [] },
  ])('excludes empty and refused answers: %j', (message) => {
    expect(doubtOf(message)).toBeUndefined();
  });
});

test('tokens that only a total contains count as output, in whole answers and in streams', () => {
  const { spend } = endpoint('google', '/v1beta/models/gemini-x:streamGenerateContent');
  const part = { content: { parts: [{ text: 'Hi' }] }, index: 0 };
  const reader = spend.readStream?.();
  // The first event knows no prompt yet, so that its total is not output.
  for (const event of [
    { candidates: [part], usageMetadata: { totalTokenCount: 50 } },
    {
      candidates: [{ ...part, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 45, candidatesTokenCount: 5, totalTokenCount: 60 },
    },
  ])
    reader?.event(JSON.stringify(event), undefined);
  expect(reader?.end()).toMatchObject({ usage: { input_tokens: 45, output_tokens: 15 } });
});
