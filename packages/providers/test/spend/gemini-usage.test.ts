import { describe, expect, it } from 'vitest';
import { costsAsListed, endpoint, streamed } from './native-call.ts';

const MODEL = 'gemini-2.5-flash';
const STREAM = endpoint('google', `/v1beta/models/${MODEL}:streamGenerateContent`);
const { readAnswer, isOwnError } = STREAM.spend;

const USAGE = {
  promptTokenCount: 1_500,
  cachedContentTokenCount: 1_000,
  candidatesTokenCount: 300,
  thoughtsTokenCount: 700,
  toolUsePromptTokenCount: 90,
  totalTokenCount: 2_590,
  promptTokensDetails: [
    { modality: 'TEXT', tokenCount: 900 },
    { modality: 'AUDIO', tokenCount: 400 },
    { modality: 'DOCUMENT', tokenCount: 200 },
  ],
  cacheTokensDetails: [
    { modality: 'TEXT', tokenCount: 800 },
    { modality: 'AUDIO', tokenCount: 200 },
  ],
  candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 300 }],
  toolUsePromptTokensDetails: [{ modality: 'TEXT', tokenCount: 90 }],
};

const answer = (usageMetadata: object) => ({
  candidates: [{ content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP', index: 0 }],
  usageMetadata,
  modelVersion: MODEL,
  responseId: 'r',
});

const TOTAL = {
  input_tokens: 1_590,
  cache_read_tokens: 1_000,
  output_tokens: 1_000,
  output_reasoning_tokens: 700,
  input_audio_tokens: 400,
  input_image_tokens: 200,
  cache_audio_read_tokens: 200,
};

describe('usage of Gemini', () => {
  it('counts thoughts as output and results of tools as input, and costs what the price list computes', () => {
    const reported = readAnswer(answer(USAGE));
    expect(reported).toEqual({ model: MODEL, usage: TOTAL });
    costsAsListed('google', MODEL, reported, answer(USAGE));
  });

  it('counts tokens that only the total contains as output, which the price list ignores', () => {
    const usage = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 115 };
    expect(readAnswer(answer(usage))?.usage).toEqual({ input_tokens: 10, output_tokens: 105 });
  });

  it('is known for a blocked prompt', () => {
    const blocked = {
      promptFeedback: { blockReason: 'SAFETY' },
      usageMetadata: { promptTokenCount: 8, totalTokenCount: 8 },
    };
    expect(readAnswer(blocked)?.usage).toEqual({ input_tokens: 8, output_tokens: 0 });
    expect(streamed(STREAM, [blocked])?.usage).toEqual({ input_tokens: 8, output_tokens: 0 });
  });

  it.each([
    ['without counts', {}],
    ['of another tier', { ...USAGE, serviceTier: 'priority' }],
    ['of other traffic', { ...USAGE, trafficType: 'PROVISIONED_THROUGHPUT' }],
    ['with a count that is not a number', { ...USAGE, thoughtsTokenCount: '700' }],
  ])('is unknown %s', (_what, usage) => {
    expect(readAnswer(answer(usage))).toBeUndefined();
  });

  it('is that of embeddings if they report it', () => {
    const embed = endpoint('google', '/v1beta/models/gemini-embedding-001:batchEmbedContents').spend;
    expect(embed.readAnswer({ embeddings: [], usageMetadata: { promptTokenCount: 12 } })?.usage).toEqual({
      input_tokens: 12,
      output_tokens: 0,
    });
    expect(embed.readAnswer({ embeddings: [{ values: [1] }] })).toBeUndefined();
  });
});

const { candidatesTokensDetails: _details, ...SO_FAR } = {
  ...USAGE,
  candidatesTokenCount: 4,
  totalTokenCount: 2_294,
};
const part = (text: string) => ({ content: { role: 'model', parts: [{ text }] }, index: 0 });
const CHUNKS = [
  { candidates: [part('H')], usageMetadata: SO_FAR, modelVersion: MODEL },
  { candidates: [part('i')], usageMetadata: { ...SO_FAR, candidatesTokenCount: 8 }, modelVersion: MODEL },
  answer(USAGE),
];

describe('usage of a Gemini stream', () => {
  it('is that of the event that finishes it', () => {
    expect(streamed(STREAM, CHUNKS)).toEqual({ model: MODEL, usage: TOTAL });
  });

  it('is unknown until then', () => {
    expect(streamed(STREAM, [])).toBeUndefined();
    expect(streamed(STREAM, CHUNKS.slice(0, 1))).toBeUndefined();
    expect(streamed(STREAM, CHUNKS.slice(0, 2))).toBeUndefined();
  });

  it('is unknown until every candidate has finished', () => {
    const second = { candidates: [{ ...part('x'), index: 1 }], usageMetadata: SO_FAR };
    const finished = { candidates: [{ index: 1, finishReason: 'MAX_TOKENS' }], usageMetadata: USAGE };
    expect(streamed(STREAM, [second, ...CHUNKS])).toBeUndefined();
    expect(streamed(STREAM, [second, ...CHUNKS, finished])?.usage).toEqual(TOTAL);
  });

  it('is unknown after an error', () => {
    const error = { error: { code: 503, message: 'overloaded', status: 'UNAVAILABLE' } };
    expect(streamed(STREAM, [...CHUNKS, error])).toBeUndefined();
  });
});

it("Google's own error is recognised by its shape, alone or in a list", () => {
  const error = { error: { code: 400, message: 'x', status: 'INVALID_ARGUMENT' } };
  expect([isOwnError(error), isOwnError([error])]).toEqual([true, true]);
  for (const page of [{ error: 'x' }, { error: { message: 'x' } }, {}, [], null, 'x'])
    expect(isOwnError(page)).toBe(false);
});
