import {
  type ByModel,
  type FreeCalls,
  K,
  type Models,
  type Most,
  type Names,
  type Rates,
  type Refusals,
  type UsageForm,
} from '../fact.ts';
import type { ModelPrice } from '../rates.ts';

/** The window is the input limit on the page. Output is counted separately. */
export const MODELS: Models = {
  source: 'https://ai.google.dev/gemini-api/docs/models, read through the list of litellm 1.109.1',
  date: '2026-11-24',
  models: {
    'gemini-1.5-flash': { window: K * K, output: 8_192 },
    'gemini-1.5-flash-8b': { window: K * K, output: 8_192 },
    'gemini-1.5-pro': { window: 2 * K * K, output: 8_192 },
    'gemini-2.0-flash': { window: K * K, output: 8_192 },
    'gemini-2.0-flash-lite': { window: K * K, output: 8_192 },
    'gemini-2.5-pro': { window: K * K, output: 65_536, thinks: true },
    'gemini-2.5-flash': { window: K * K, output: 65_536, thinks: true },
    'gemini-2.5-flash-lite': { window: K * K, output: 65_536, thinks: true },
    'gemini-3-pro': { window: K * K, output: 65_536, thinks: true },
    'gemini-3-flash': { window: K * K, output: 65_536, thinks: true },
    'gemini-3.1-pro': { window: K * K, output: 65_536, thinks: true },
    'gemini-3.1-flash-lite': { window: K * K, output: 65_536, thinks: true },
    'gemini-3.5-flash': { window: K * K, output: 65_536, thinks: true },
    'gemini-3.5-flash-lite': { window: K * K, output: 65_536, thinks: true },
    'gemini-3.6-flash': { window: K * K, output: 65_536, thinks: true },
    'gemini-3.7-flash': { window: K * K, output: 65_536, thinks: true },
    'gemini-3.8-flash': { window: K * K, output: 65_536, thinks: true },
    'gemini-pro-latest': { window: K * K, output: 65_536, thinks: true },
    'gemini-flash-latest': { window: K * K, output: 65_536, thinks: true },
    'gemini-flash-lite-latest': { window: K * K, output: 65_536, thinks: true },
    'gemini-embedding-001': { window: 2_048 },
    'gemini-embedding-2': { window: 8_192 },
    'gemma-3-27b-it': { window: 128 * K, output: 8_192 },
    'gemma-4-26b-a4b-it': { window: 256 * K, output: 32_768, thinks: true },
    'gemma-4-31b-it': { window: 256 * K, output: 32_768, thinks: true },
  },
};

/**
 * How it states usage and errors. Both names of the bound become `maxOutputTokens`, which includes thoughts. An error is in a list with one
 * element.
 */
export const OPENAI_USAGE = {
  source: 'https://ai.google.dev/gemini-api/docs/openai',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object', 'error list'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://ai.google.dev/api',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/*/models' },
    { method: 'GET', path: '/*/models/*' },
    { method: 'POST', path: '/*/models/*:countTokens' },
    { method: 'GET', path: '/*/openai/models' },
    { method: 'GET', path: '/*/openai/models/*' },
  ],
};

/** A request that fails with a 400 or 500 error is not charged. */
export const REFUSALS: Refusals = {
  source: 'https://ai.google.dev/gemini-api/docs/billing',
  date: '2026-11-22',
  errors: [
    { status: 400, billing: 'free' },
    { status: 500, billing: 'free' },
  ],
};

/** Imagen: $0.02, $0.04 and $0.06 for an image of any size. */
export const UNIT_PRICES: ByModel<ModelPrice> = {
  source: 'https://ai.google.dev/gemini-api/docs/pricing, Imagen',
  date: '2026-11-22',
  models: {
    'imagen-4.0-fast-generate-001': { images: 20_000 },
    'imagen-4.0-generate-001': { images: 40_000 },
    'imagen-4.0-ultra-generate-001': { images: 60_000 },
  },
};

/** Up to Gemini 2.5: $35 for 1,000 prompts that Google Search grounded, and $25 for 1,000 prompts that Google Maps grounded. */
export const FEES_BY_PROMPT: Rates = {
  source: 'https://ai.google.dev/gemini-api/docs/pricing',
  date: '2026-11-27',
  matching: /^gemini-[12]\./,
  rates: { grounded_prompts: 35_000, grounding_searches: 0, map_prompts: 25_000 },
};

/**
 * From Gemini 3 on: $14 for 1,000 queries. Answers do not say how many queries Maps got. A name without a number does not state a
 * generation.
 */
export const FEES_BY_QUERY: Rates = {
  source: 'https://ai.google.dev/gemini-api/docs/pricing',
  date: '2026-11-27',
  matching: /^gemini-[3-9]/,
  rates: { grounded_prompts: 0, grounding_searches: 14_000 },
};

/** Kinds of tokens that cost as all input: "text / image / video", and sound where the page has no separate line for it. */
export const MEDIA_AS_WHOLE: Names = {
  source: 'https://ai.google.dev/gemini-api/docs/pricing',
  date: '2026-11-27',
  names: ['input_audio', 'input_image', 'input_video', 'cache_audio_read', 'cache_image_read'],
};

/** Images of one call of Imagen. A call without `sampleCount` also gets this number. */
export const IMAGES_OF_CALL: Most = {
  source: 'https://ai.google.dev/gemini-api/docs/imagen#imagen-configuration',
  date: '2026-11-27',
  most: 4,
};

/** Headers of its answers that pass. `@google/genai` reads the address of an upload. */
export const ANSWER_HEADERS: Names = {
  source: 'https://ai.google.dev/gemini-api/docs/priority-inference',
  date: '2026-11-26',
  names: ['x-goog-*', 'x-gemini-*', 'x-guploader-*'],
};

/** Endpoints that open sessions elsewhere, or hand out keys. */
export const OUTSIDE: Names = {
  source: 'https://ai.google.dev/gemini-api/docs/ephemeral-tokens',
  date: '2026-11-29',
  names: ['/*/auth_tokens'],
};
