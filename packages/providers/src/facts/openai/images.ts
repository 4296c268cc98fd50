import type { ByModel, Group, Most, Names } from '../fact.ts';

/** Fields of image generation. Tokens depend on size and quality only. */
export const IMAGE_FIELDS = {
  at: '',
  of: 'fields',
  source: '`openai` 7.59, resources/images, ImageGenerateParams',
  date: '2026-11-27',
  entries: {
    model: { effect: 'harmless' },
    prompt: { effect: 'harmless' },
    size: { effect: 'harmless' },
    quality: { effect: 'harmless' },
    background: { effect: 'harmless' },
    moderation: { effect: 'harmless' },
    style: { effect: 'harmless' },
    user: { effect: 'harmless' },
    output_format: { effect: 'harmless' },
    output_compression: { effect: 'harmless' },
    response_format: { effect: 'harmless' },
    n: { effect: 'judged', by: 'images' },
    stream: { effect: 'harmless', values: [true, false], reason: 'is neither true nor false' },
    partial_images: { effect: 'harmless', values: [0, 1, 2, 3], reason: 'is not a whole number from 0 to 3' },
  },
} as const satisfies Group;

/** Output tokens of a partial image. */
export const PARTIAL_TOKENS: Most = {
  source: 'https://developers.openai.com/api/docs/guides/image-generation#partial-images-cost',
  date: '2026-11-22',
  most: 100,
};

/** The sizes for which costs are published. */
export const SIZES: Names = {
  source: 'https://developers.openai.com/api/docs/guides/image-generation#cost-and-latency',
  date: '2026-11-22',
  names: ['1024x1024', '1024x1536', '1536x1024'],
};

/** Output tokens of an image of gpt-image-1 and -mini by quality, in the order of sizes. */
export const FIRST_MODELS: ByModel<readonly number[]> = {
  source:
    'https://developers.openai.com/api/docs/guides/image-generation#cost-and-latency, "Models prior to gpt-image-2"',
  date: '2026-11-22',
  models: {
    low: [272, 408, 400],
    medium: [1_056, 1_584, 1_568],
    high: [4_160, 6_240, 6_208],
  },
};

/**
 * The page gives no tokens for gpt-image-2, but dollars for an image, rounded to a tenth of a cent. These are the most tokens at $30 a million
 * that round to them: (price + $0.0005) / $0.00003.
 */
export const SECOND_MODEL: ByModel<readonly number[]> = {
  source: 'https://developers.openai.com/api/docs/guides/image-generation, "Calculating costs"',
  date: '2026-11-22',
  models: {
    low: [217, 184, 184],
    medium: [1_784, 1_384, 1_384],
    high: [7_050, 5_517, 5_517],
  },
};

/** `n` at OpenAI, and at xAI. */
export const IMAGES_OF_CALL: Most = {
  source:
    'https://platform.openai.com/docs/api-reference/images/create#images-create-n; https://docs.x.ai/docs/guides/image-generation',
  date: '2026-11-27',
  most: 10,
};

/**
 * The models whose tokens are published, each with the function that counts them. gpt-image-1.5 is not here: it also bills some 200
 * tokens of text an image, and OpenAI publishes no maximum for them. Nor does it for later models.
 */
export const COUNTED_MODELS = {
  source:
    'https://developers.openai.com/api/docs/guides/image-generation#cost-and-latency; https://community.openai.com/t/1369511',
  date: '2026-11-22',
  models: {
    'gpt-image-1': 'ofFirstModels',
    'gpt-image-1-mini': 'ofFirstModels',
    'gpt-image-2': 'ofSecondModel',
  },
} as const satisfies ByModel<string>;
