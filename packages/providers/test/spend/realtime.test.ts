import { describe, expect, it, test } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  governSession,
  modelFacts,
  type Provider,
  pricedBound,
  pricingOf,
  refusedItem,
  spendOf,
  worksByItself,
} from '../../src/index.ts';

const openai = BUILT_IN_PROVIDERS.get('openai') as Provider;
const spend = spendOf(openai, '/v1/realtime');
const AT = { prices: BUNDLED_PRICES, now: Date.UTC(2026, 10, 29) };

const boundOf = (body: object, model = 'gpt-realtime') =>
  spend?.bound({ model, ...body }, { path: '/v1/realtime', bytes: 10, facts: modelFacts(openai, model) });

/** The cost of a usage as the API states it at the end of a response. */
function costOf(model: string, usage: object, response: object = {}) {
  const reader = spend?.readStream?.();
  reader?.event(JSON.stringify({ type: 'response.done', response: { ...response, usage } }), undefined);
  const reported = reader?.end();
  return reported?.usage && pricingOf(openai, model, AT)?.cost(reported.usage);
}

describe('a response of a Realtime session', () => {
  it('is held as the whole window and the full output, at the audio rates', () => {
    const judged = boundOf({ max_output_tokens: 1_000 });
    if (!judged || 'unbounded' in judged) throw new Error('it has a bound');
    expect(judged.bound).toMatchObject({ inputTokens: 32_768, output: { asked: 1_000, times: 1 } });
    const pricing = pricingOf(openai, 'gpt-realtime', AT);
    if (!pricing) throw new Error('it has a price');
    expect(pricedBound(openai, 'gpt-realtime', pricing, judged.bound)).toEqual({
      fixedMicrousd: Math.ceil(32_768 * 32),
      outputRate: 64_000_000,
    });
  });

  it.each([[{}], [{ max_output_tokens: 'inf' }], [{ max_output_tokens: null }]])(
    'without an output bound (%j) gets the largest number that the API takes',
    (body) => {
      expect(boundOf(body)).toMatchObject({ bound: { output: { asked: 4_096 } } });
      expect(spend?.withOutputBound?.(body as never, 300)).toEqual({ max_output_tokens: 300 });
    },
  );

  it('of a reasoning model is held with the most that the model can write', () => {
    expect(boundOf({}, 'gpt-realtime-2')).toMatchObject({
      bound: { inputTokens: 128_000, output: { coversReasoning: false } },
    });
    expect(boundOf({})).toMatchObject({ bound: { output: { coversReasoning: true } } });
  });

  it.each([
    [{ novelty: 1 }, 'novelty'],
    [{ prompt: { id: 'p' } }, 'prompt'],
    [{ tools: [{ type: 'mcp', server_url: 'https://x' }] }, 'tools[0]'],
    [{ tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    [{ conversation: 'conv_1' }, 'conversation'],
    [{ tools: [{ type: 'function', Type: 'mcp', server_url: 'https://x' }] }, 'tools[0].Type'],
    [{ input: [{ type: 'message' }, { type: 'mcp_approval_response' }] }, 'input[1].type'],
    [{ input: [{ type: 'item_reference', id: 'x', item: {} }] }, 'input[0].item'],
    [{ input: [{}] }, 'input[0].type'],
    [{ max_output_tokens: 0 }, 'max_output_tokens'],
  ])('%j has no bound', (body, param) => {
    expect(boundOf(body)).toMatchObject({ unbounded: { param } });
  });
});

describe('the usage of a response', () => {
  const SPOKEN = {
    total_tokens: 1_500,
    input_tokens: 1_200,
    output_tokens: 300,
    input_token_details: {
      text_tokens: 200,
      audio_tokens: 900,
      image_tokens: 100,
      cached_tokens: 500,
      cached_tokens_details: { text_tokens: 100, audio_tokens: 400, image_tokens: 0 },
    },
    output_token_details: { text_tokens: 100, audio_tokens: 200 },
  };

  it('is priced by its kinds of tokens, including the cached kinds', () => {
    const input = 100 * 4 + 500 * 32 + 100 * 5 + 500 * 0.4;
    expect(costOf('gpt-realtime', SPOKEN)).toBe(input + 100 * 16 + 200 * 64);
    const mini = 100 * 0.6 + 500 * 10 + 100 * 0.8 + 100 * 0.06 + 400 * 0.3;
    expect(costOf('gpt-realtime-mini', SPOKEN)).toBe(Math.ceil(mini + 100 * 2.4 + 200 * 20));
  });

  it('costs as if nothing were cached if it does not say what was cached', () => {
    const { cached_tokens_details: _, ...details } = SPOKEN.input_token_details;
    const input = 200 * 4 + 900 * 32 + 100 * 5;
    expect(costOf('gpt-realtime', { ...SPOKEN, input_token_details: details })).toBe(
      input + 100 * 16 + 200 * 64,
    );
  });

  const SAID = { output: [{ type: 'message', content: [{ type: 'output_audio', transcript: 'Hi.' }] }] };
  it.each([
    ['nothing', undefined],
    ['no input', { ...SPOKEN, input_tokens: undefined }],
    ['a text', { ...SPOKEN, input_tokens: '1200' }],
    ['a new kind', { ...SPOKEN, output_token_details: { hologram_tokens: 5 } }],
  ])('that states %s is unknown', (_what, usage) => {
    expect(costOf('gpt-realtime', usage as never, SAID)).toBeUndefined();
  });

  it('of a reasoning model counts its reasoning within the text', () => {
    const output_token_details = { text_tokens: 100, audio_tokens: 200, reasoning_tokens: 60 };
    const thought = { ...SPOKEN, output_token_details };
    expect(costOf('gpt-realtime-2', thought)).toBe(costOf('gpt-realtime-2', SPOKEN));
  });

  it('that has text but no output tokens is unknown', () => {
    expect(costOf('gpt-realtime', { input_tokens: 5, output_tokens: 0 }, SAID)).toBeUndefined();
    expect(costOf('gpt-realtime', { input_tokens: 0, output_tokens: 0 }, { status: 'cancelled' })).toBe(0);
  });

  it('with an item of a tool that no client declared is unknown', () => {
    const output = [...SAID.output, { type: 'mcp_call', id: 'x' }];
    expect(costOf('gpt-realtime', SPOKEN, { output })).toBeUndefined();
  });

  it('is read only from the event that ends the response', () => {
    expect(spend?.readStream?.().matters?.(Buffer.from('{"type":"response.output_audio.delta"}'))).toBe(
      false,
    );
    expect(spend?.readStream?.().matters?.(Buffer.from('{"type":"response.done"}'))).toBe(true);
  });
});

describe('a session', () => {
  const input = (value: object) => ({ type: 'realtime', audio: { input: value } });

  it.each([
    [{ type: 'server_vad' }, true],
    [{ type: 'semantic_vad', create_response: true, interrupt_response: false }, true],
    [{ type: 'server_vad', create_response: false }, false],
    [{ type: 'server_vad', create_response: null, idle_timeout_ms: 5_000 }, true],
  ])('with %j starts no response by itself', (turn_detection, answers) => {
    const { idle_timeout_ms: _, ...kept } = turn_detection as { idle_timeout_ms?: number };
    const governed = governSession(input({ turn_detection }));
    expect(governed).toEqual({
      session: input({ turn_detection: { ...kept, create_response: false } }),
      answers,
    });
    if ('session' in governed) expect(worksByItself(governed.session)).toBe(false);
    expect(worksByItself(input({ turn_detection }))).toBe(answers);
  });

  it('without speech detection keeps it off', () => {
    expect(governSession(input({ turn_detection: null }))).toEqual({
      session: input({ turn_detection: null }),
      answers: false,
    });
    expect(governSession({ instructions: 'x' })).toEqual({
      session: { instructions: 'x' },
      answers: undefined,
    });
    expect(worksByItself(input({ turn_detection: null }))).toBe(false);
    for (const other of [
      {},
      { audio: null },
      { type: 'transcription', audio: { input: { turn_detection: null } } },
    ])
      expect(worksByItself(other)).toBe(true);
    expect(worksByItself(input({ turn_detection: null, transcription: { model: 'whisper-1' } }))).toBe(true);
  });

  it('transcribes nothing, because a transcription is billed separately', () => {
    expect(governSession(input({ transcription: { model: 'whisper-1' } }))).toMatchObject({
      session: input({ transcription: null }),
    });
  });

  it.each([
    [{ novelty: 1 }, 'session.novelty'],
    [{ type: 'transcription' }, 'session.type'],
    [{ audio: null }, 'session.audio'],
    [{ audio: { input: null } }, 'session.audio.input'],
    [input({ turn_detection: { type: null } }), 'session.audio.input.turn_detection.type'],
    [input({ turn_detection: {} }), 'session.audio.input.turn_detection.type'],
    [{ prompt: { id: 'x' } }, 'session.prompt'],
    [{ tools: [{ type: 'mcp' }] }, 'session.tools[0]'],
    [{ audio: { novelty: 1 } }, 'session.audio.novelty'],
    [{ audio: [] }, 'session.audio'],
    [input({ novelty: 1 }), 'session.audio.input.novelty'],
    [input({ turn_detection: { type: 'novel_vad' } }), 'session.audio.input.turn_detection.type'],
    [
      input({ turn_detection: { Create_Response: true } }),
      'session.audio.input.turn_detection.Create_Response',
    ],
    [input({ turn_detection: 'server_vad' }), 'session.audio.input.turn_detection'],
  ])('%j is refused', (session, param) => {
    expect(governSession(session)).toMatchObject({ unbounded: { param } });
  });
});

test('items of tools that the API runs are refused', () => {
  for (const type of ['message', 'function_call', 'function_call_output'])
    expect(refusedItem({ type })).toBeUndefined();
  for (const item of [{ type: 'mcp_approval_response' }, {}, undefined, 'x'])
    expect(refusedItem(item)).toMatchObject({ param: expect.stringMatching(/^item/) });
  expect(refusedItem({ type: 'message', Type: 'mcp_call' })).toMatchObject({ param: 'item.Type' });
});
