import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { JsonObject } from '../../src/index.ts';
import { boundOf, endpoint, refusedField, streamed } from './native-call.ts';

const images = endpoint('openai', '/v1/images/generations');
const speech = endpoint('openai', '/v1/audio/speech');
const imagen = endpoint('google', '/v1beta/models/imagen-4.0-generate-001:predict');

const draw = (more: JsonObject = {}): JsonObject => ({ model: 'gpt-image-1', prompt: 'A cat', ...more });
const outputOf = (more: JsonObject) => boundOf(images, draw(more)).output;

describe('tokens of an image are those that OpenAI publishes', () => {
  const S = '1024x1024';
  const P = '1024x1536';
  const L = '1536x1024';
  // https://developers.openai.com/api/docs/guides/image-generation#cost-and-latency
  test.each([
    ...[['low', S, 272] as const, ['low', P, 408] as const, ['low', L, 400] as const],
    ...[['medium', S, 1_056] as const, ['medium', P, 1_584] as const, ['medium', L, 1_568] as const],
    ...[['high', S, 4_160] as const, ['high', P, 6_240] as const, ['high', L, 6_208] as const],
  ])('gpt-image-1 %s %s: %i', (quality, size, tokens) => {
    const output = { asked: tokens, least: tokens, times: 3, coversReasoning: true };
    expect(outputOf({ quality, size, n: 3 })).toEqual(output);
    expect(outputOf({ quality, size, n: 3, model: 'gpt-image-1-mini' })).toEqual(output);
  });

  test.each<[string, JsonObject, number]>([
    ['neither is given', {}, 6_240],
    ['both are auto', { quality: 'auto', size: 'auto' }, 6_240],
    ['they are null', { quality: null, size: null }, 6_240],
    ['the quality is unknown', { quality: 'constructor', size: S }, 6_240],
    ['the size is auto', { quality: 'low', size: 'auto' }, 408],
    ['the quality is auto', { quality: 'auto', size: S }, 6_240],
  ])('gpt-image-1 takes the dearest where %s', (_what, more, tokens) => {
    expect(outputOf(more)?.asked).toBe(tokens);
  });

  test('partial images add 100 tokens each', () => {
    const low = { quality: 'low', size: S, stream: true };
    expect([0, 1, 2, 3].map((partial_images) => outputOf({ ...low, partial_images })?.asked)).toEqual([
      272, 372, 472, 572,
    ]);
  });

  // Dollars of the same page, at $30 for a million tokens.
  test.each([
    ...[['low', S, 0.006] as const, ['low', P, 0.005] as const, ['low', L, 0.005] as const],
    ...[['medium', S, 0.053] as const, ['medium', P, 0.041] as const, ['medium', L, 0.041] as const],
    ...[['high', S, 0.211] as const, ['high', P, 0.165] as const, ['high', L, 0.165] as const],
  ])('gpt-image-2 %s %s covers every figure that rounds to $%f', (quality, size, dollars) => {
    for (const model of ['gpt-image-2', 'gpt-image-2-2026-04-21']) {
      const cost = ((outputOf({ model, quality, size })?.asked ?? 0) * 30) / 1e6;
      expect(cost).toBeGreaterThanOrEqual(dollars + 0.0005 - 3e-5);
      expect(cost).toBeLessThan(dollars + 0.0006);
    }
  });

  test('each image reads the whole prompt', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 1, max: 10 }), (prompt, n) => {
        expect(boundOf(images, draw({ prompt, n })).inputTokens).toBeGreaterThanOrEqual(
          n * Buffer.byteLength(prompt),
        );
      }),
    );
  });
});

describe('an image call without a known bound is refused by its field', () => {
  test.each<[string, JsonObject]>([
    ['size', { model: 'gpt-image-2' }],
    ['size', { model: 'gpt-image-2', quality: 'low', size: 'auto' }],
    ['quality', { model: 'gpt-image-2', quality: 'auto', size: '1024x1024' }],
    ['size', { model: 'gpt-image-2', quality: 'high', size: '3840x2160' }],
    ['n', { n: 11 }],
    ['n', { n: 0 }],
    ['n', { n: '2' }],
    ['n', { n: 2, stream: true }],
    ['partial_images', { stream: true, partial_images: 4 }],
    ['partial_images', { stream: true, partial_images: 0.5 }],
    ['stream', { stream: 'yes' }],
    ['image', { image: ['data:image/png;base64,AAAA'] }],
    ['input_fidelity', { input_fidelity: 'high' }],
  ])('%s: %j', (field, more) => {
    expect(refusedField(images, draw(more))).toBe(field);
  });

  it('refuses any unknown field', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 3 }), (field) => {
        expect(refusedField(images, draw({ [`x${field}`]: 1 }))).toBe(`x${field}`);
      }),
    );
  });
});

describe('models with a price for each image', () => {
  test.each([
    [images, { model: 'some-model', prompt: 'A cat' }, 1],
    [images, { model: 'gpt-image-1.5', prompt: 'A cat', n: 4, quality: 'low', size: '1024x1024' }, 4],
    [endpoint('xai', '/v1/images/generations'), { model: 'g', prompt: 'A cat', n: 10, resolution: '2k' }, 10],
    [imagen, { instances: [{ prompt: 'A cat' }] }, 4],
    [imagen, { instances: [{ prompt: 'A cat' }], parameters: { sampleCount: 2, aspectRatio: '1:1' } }, 2],
  ])('%o %j: %i', (at, body, count) => {
    expect(boundOf(at, body)).toEqual({ inputTokens: 0, fees: { images: count }, output: undefined });
  });

  test.each<[string, JsonObject]>([
    ['instances', { instances: [{ prompt: 'a' }, { prompt: 'b' }] }],
    ['instances', { instances: [] }],
    ['instances[0].image', { instances: [{ prompt: 'a', image: {} }] }],
    ['parameters.sampleCount', { instances: [{ prompt: 'a' }], parameters: { sampleCount: 5 } }],
    ['parameters.sampleCount', { instances: [{ prompt: 'a' }], parameters: { sampleCount: '4' } }],
    ['parameters.sample_count', { instances: [{ prompt: 'a' }], parameters: { sample_count: 8 } }],
    ['parameters', { instances: [{ prompt: 'a' }], parameters: [] }],
  ])('Imagen refuses %s: %j', (field, body) => {
    expect(refusedField(imagen, body)).toBe(field);
  });

  test('an answer without usage reports its images', () => {
    const data = [{ b64_json: '' }, { b64_json: '' }];
    expect(images.spend.readAnswer({ created: 1, data })).toMatchObject({ usage: { images: 2 } });
    const { spend } = endpoint('xai', '/v1/images/generations');
    expect(spend.readAnswer({ created: 1, data, usage: { cost_in_usd_ticks: 4 } })).toMatchObject({
      usage: { images: 2 },
    });
    expect(imagen.spend.readAnswer({ predictions: [{ bytesBase64Encoded: '' }] })).toMatchObject({
      usage: { images: 1 },
    });
    expect(images.spend.readAnswer({ created: 1, data: [] })).toBeUndefined();
    expect(imagen.spend.readAnswer({})).toBeUndefined();
  });
});

describe('usage of GPT Image', () => {
  const usage = { input_tokens: 48, output_tokens: 481, total_tokens: 529 };

  test('text that the model wrote is not an image', () => {
    // https://community.openai.com/t/1369511
    const answer = {
      created: 1,
      data: [{ b64_json: '' }],
      usage: {
        ...usage,
        input_tokens_details: { image_tokens: 0, text_tokens: 48 },
        output_tokens_details: { image_tokens: 272, text_tokens: 209 },
      },
    };
    expect(images.spend.readAnswer(answer)?.usage).toEqual({
      input_tokens: 48,
      output_tokens: 481,
      output_image_tokens: 272,
    });
  });

  test('output without details is image', () => {
    expect(images.spend.readAnswer({ usage })?.usage).toMatchObject({ output_image_tokens: 481 });
  });

  test.each([
    { output_tokens: 5 },
    { input_tokens: -1, output_tokens: 5 },
    { input_tokens: 1, output_tokens: '5' },
    { input_tokens: 1, output_tokens: 5, output_tokens_details: { image_tokens: 0.5 } },
  ])('malformed usage is not reported: %j', (held) => {
    expect(images.spend.readAnswer({ data: [{}], usage: held })).toBeUndefined();
  });

  const partial = { type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 };
  const completed = { type: 'image_generation.completed', b64_json: 'AAAA', usage };

  test('a stream reports it in its last event', () => {
    expect(streamed(images, [partial, completed])?.usage).toMatchObject({ output_tokens: 481 });
  });

  test.each([
    ['it broke off', [partial]],
    ['it failed', [completed, { error: { message: 'no' } }]],
    ['it holds several images', [completed, completed]],
    ['the last event has no usage', [{ ...completed, usage: undefined }]],
  ])('a stream reports nothing if %s', (_what, events) => {
    expect(streamed(images, events)).toBeUndefined();
  });
});

describe('speech', () => {
  const say = (input: unknown, more: JsonObject = {}) => ({ model: 'tts-1', voice: 'alloy', input, ...more });

  test('is held at one character for each byte, which is never fewer than its characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const { inputTokens, fees, output } = boundOf(speech, say(text));
        expect([inputTokens, output]).toEqual([0, undefined]);
        expect(fees.characters).toBe(Buffer.byteLength(text));
        expect(fees.characters).toBeGreaterThanOrEqual(text.length);
      }),
    );
  });

  test.each<[string, JsonObject]>([
    ['input', say(['a'])],
    ['stream_format', say('a', { stream_format: 'sse' })],
    ['extra', say('a', { extra: 1 })],
  ])('%s is refused: %j', (field, body) => {
    expect(refusedField(speech, body)).toBe(field);
  });
});
