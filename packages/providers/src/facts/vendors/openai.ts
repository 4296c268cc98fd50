import type { ByModel, FreeCalls, Group, Least, Matching, Models, Names, Rates, UsageForm } from '../fact.ts';
import type { ModelPrice } from '../rates.ts';

/** Models with 272,000 tokens of input have a window of 400,000. Models with 922,000 tokens of input have a window of 1,050,000. */
export const MODELS: Models = {
  source:
    'https://platform.openai.com/docs/models, each model’s page, read through the list of litellm 1.109.1',
  date: '2026-11-24',
  models: {
    'gpt-3.5-turbo': { window: 16_385, output: 4_096 },
    'gpt-4': { window: 8_192, output: 8_192 },
    'gpt-4-32k': { window: 32_768, output: 32_768 },
    'gpt-4-1106-preview': { window: 128_000, output: 4_096 },
    'gpt-4-0125-preview': { window: 128_000, output: 4_096 },
    'gpt-4-turbo': { window: 128_000, output: 4_096 },
    'gpt-4o': { window: 128_000, output: 16_384 },
    'gpt-4o-mini': { window: 128_000, output: 16_384 },
    'gpt-4o-search-preview': { window: 128_000, output: 16_384 },
    'gpt-4o-mini-search-preview': { window: 128_000, output: 16_384 },
    'chatgpt-4o': { window: 128_000, output: 16_384 },
    'gpt-4.1': { window: 1_047_576, output: 32_768 },
    'gpt-4.1-mini': { window: 1_047_576, output: 32_768 },
    'gpt-4.1-nano': { window: 1_047_576, output: 32_768 },
    'gpt-5': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5-mini': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5-nano': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5-codex': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5-pro': { window: 400_000, output: 272_000, thinks: true },
    'gpt-5-chat': { window: 128_000, output: 16_384, thinks: true },
    'gpt-5-search-api': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.1': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.1-codex': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.1-codex-mini': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.1-codex-max': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.1-chat': { window: 128_000, output: 16_384, thinks: true },
    'gpt-5.2': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.2-codex': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.2-pro': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.2-chat': { window: 128_000, output: 16_384, thinks: true },
    'gpt-5.3-codex': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.3-chat': { window: 128_000, output: 16_384, thinks: true },
    'gpt-5.4': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-5.4-pro': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-5.4-mini': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.4-nano': { window: 400_000, output: 128_000, thinks: true },
    'gpt-5.5': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-5.5-pro': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-5.6-luna': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-5.6-sol': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-5.6-terra': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-6-astra': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-6-luna': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-6-sol': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-6.1-sol': { window: 1_050_000, output: 128_000, thinks: true },
    'gpt-6.1-terra': { window: 1_050_000, output: 128_000, thinks: true },
    // The pages of the models, and https://community.openai.com/t/1357331: 32,768 tokens of which 4,096 are output (2026-11-29).
    'gpt-realtime': { window: 32_768, output: 4_096 },
    'gpt-realtime-1.5': { window: 32_768, output: 4_096 },
    // Its page says 32,000, and the list of litellm 128,000.
    'gpt-realtime-mini': { window: 128_000, output: 4_096 },
    'gpt-realtime-2': { window: 128_000, output: 32_000, thinks: true },
    'gpt-realtime-2.1': { window: 128_000, output: 32_000, thinks: true },
    'gpt-realtime-2.1-mini': { window: 128_000, output: 32_000, thinks: true },
    o1: { window: 200_000, output: 100_000, thinks: true },
    'o1-pro': { window: 200_000, output: 100_000, thinks: true },
    'o1-preview': { window: 128_000, output: 32_768, thinks: true },
    'o1-mini': { window: 128_000, output: 65_536, thinks: true },
    o3: { window: 200_000, output: 100_000, thinks: true },
    'o3-pro': { window: 200_000, output: 100_000, thinks: true },
    'o3-mini': { window: 200_000, output: 100_000, thinks: true },
    'o3-deep-research': { window: 200_000, output: 100_000, thinks: true },
    'o4-mini': { window: 200_000, output: 100_000, thinks: true },
    'o4-mini-deep-research': { window: 200_000, output: 100_000, thinks: true },
  },
};

/**
 * Most input tokens of one image. Models counted in tiles scale an image to at most 768 × 2,048 pixels, 8 tiles; those counted in patches to
 * at most 1,536 patches, times a factor. Later models have other budgets (`detail: original`) and factors that the page does not state. They
 * are not listed, so their images count as the whole context window.
 */
export const IMAGE_TOKENS: ByModel<number> = {
  source: 'https://platform.openai.com/docs/guides/images-vision#calculating-costs',
  date: '2026-11-22',
  models: {
    'gpt-4o': 85 + 8 * 170,
    'gpt-4o-mini': 2_833 + 8 * 5_667,
    // The page describes tiles (1,445) and patches without a factor. This is the larger.
    'gpt-4.1': 1_536,
    'gpt-4.1-mini': Math.ceil(1_536 * 1.62),
    'gpt-4.1-nano': Math.ceil(1_536 * 2.46),
    o1: 75 + 8 * 150,
    o3: 75 + 8 * 150,
    'o4-mini': Math.ceil(1_536 * 1.72),
    'gpt-5': 70 + 8 * 140,
    'gpt-5-mini': Math.ceil(1_536 * 1.62),
    'gpt-5-nano': Math.ceil(1_536 * 2.46),
  },
};

/**
 * Models by their encoding. Only names that are listed here are counted, so that a later model of another encoding is not taken for one
 * of these. Models that run several times or bring prompts of their own (`-pro`, `-chat`) are not listed.
 */
export const ENCODINGS = {
  source:
    'tiktoken 0.14.0 (https://github.com/openai/tiktoken), tiktoken/model.py: any name that begins with gpt-5 has o200k_base',
  date: '2026-11-22',
  models: {
    'gpt-3.5-turbo': 'cl100k_base',
    'gpt-4': 'cl100k_base',
    'gpt-4-turbo': 'cl100k_base',
    'gpt-4o': 'o200k_base',
    'gpt-4o-mini': 'o200k_base',
    'gpt-4.1': 'o200k_base',
    'gpt-4.1-mini': 'o200k_base',
    'gpt-4.1-nano': 'o200k_base',
    o1: 'o200k_base',
    o3: 'o200k_base',
    'o3-mini': 'o200k_base',
    'o4-mini': 'o200k_base',
    'gpt-5': 'o200k_base',
    'gpt-5-mini': 'o200k_base',
    'gpt-5-nano': 'o200k_base',
    'gpt-5-codex': 'o200k_base',
    'gpt-5.1': 'o200k_base',
    'gpt-5.1-codex': 'o200k_base',
    'gpt-5.1-codex-mini': 'o200k_base',
    'gpt-5.1-codex-max': 'o200k_base',
    'gpt-5.2': 'o200k_base',
    'gpt-5.2-codex': 'o200k_base',
    'gpt-5.3-codex': 'o200k_base',
    'gpt-5.4': 'o200k_base',
    'gpt-5.4-mini': 'o200k_base',
    'gpt-5.4-nano': 'o200k_base',
    'gpt-5.5': 'o200k_base',
    'gpt-5.6-luna': 'o200k_base',
    'gpt-5.6-sol': 'o200k_base',
    'gpt-5.6-terra': 'o200k_base',
  },
} as const satisfies ByModel<string>;

/** Tools that OpenAI runs at most `max_tool_calls` times. `web_search_preview` costs more at models that do not reason, and containers, images and MCP servers have fees of other kinds, so none of these has a bound. */
export const SERVER_TOOLS = {
  at: 'tools[]',
  of: 'kinds',
  source: 'https://platform.openai.com/docs/pricing#built-in-tools',
  date: '2026-11-27',
  entries: {
    web_search: { effect: 'judged', by: 'callsUpTo', unit: 'web_searches' },
    web_search_2025_08_26: { effect: 'judged', by: 'callsUpTo', unit: 'web_searches' },
    file_search: { effect: 'judged', by: 'callsUpTo', unit: 'storage_searches' },
  },
} as const satisfies Group;

/** How it states usage and errors. The bound includes reasoning (guides/reasoning). */
export const USAGE = {
  source: 'https://platform.openai.com/docs/api-reference',
  date: '2026-11-22',
  standardTier: 'default',
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://platform.openai.com/docs/api-reference',
  date: '2026-11-26',
  calls: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
    { method: 'GET', path: '/v1/chat/completions' },
    { method: 'GET', path: '/v1/chat/completions/*' },
    { method: 'GET', path: '/v1/chat/completions/*/messages' },
    { method: 'POST', path: '/v1/chat/completions/*' },
    { method: 'DELETE', path: '/v1/chat/completions/*' },
    { method: 'GET', path: '/v1/responses/*' },
    { method: 'GET', path: '/v1/responses/*/input_items' },
    { method: 'POST', path: '/v1/responses/*/cancel' },
    { method: 'DELETE', path: '/v1/responses/*' },
    { method: 'POST', path: '/v1/responses/input_tokens' },
    {
      method: 'POST',
      path: '/v1/moderations',
      source: 'https://platform.openai.com/docs/guides/moderation: "The moderation endpoint is free to use"',
    },
  ],
};

/** $15 and $30 for one million characters. */
export const UNIT_PRICES: ByModel<ModelPrice> = {
  source: 'https://developers.openai.com/api/docs/models/tts-1.md, tts-1-hd.md',
  date: '2026-11-22',
  models: {
    'tts-1': { characters: 15 },
    'tts-1-hd': { characters: 30 },
  },
};

/** Sound of the models that chat with it, which lists leave out. */
export const SOUND: ByModel<ModelPrice> = {
  source:
    'https://developers.openai.com/api/docs/models, the page of each model, and of the first snapshot the prices at its release',
  date: '2026-11-27',
  models: {
    'gpt-4o-audio-preview-2024-10-01': { input_audio: 100_000_000, output_audio: 200_000_000 },
    'gpt-4o-audio-preview': { input_audio: 40_000_000, output_audio: 80_000_000 },
    'gpt-4o-mini-audio-preview': { input_audio: 10_000_000, output_audio: 20_000_000 },
    'gpt-audio-mini': { input_audio: 10_000_000, output_audio: 20_000_000 },
    'gpt-audio': { input_audio: 32_000_000, output_audio: 64_000_000 },
  },
};

/** Fees at models that do not reason: $10 for 1,000 searches, $2.50 for 1,000 in files, $25 for 1,000 of `web_search_preview`. */
export const FEES: Rates = {
  source: 'https://developers.openai.com/api/docs/pricing#tools',
  date: '2026-11-27',
  matching: /^gpt-4(o|\.1)/,
  rates: { web_searches: 10_000, storage_searches: 2_500, preview_searches: 25_000 },
};

/**
 * Fees at models that reason: $10 for 1,000 of `web_search_preview`. A name says whether the model reasons, except for the chat models of
 * GPT-5.
 */
export const FEES_OF_REASONING: Rates = {
  source: 'https://developers.openai.com/api/docs/pricing#tools',
  date: '2026-11-27',
  matching: /^(o\d|gpt-[5-9])(?!.*chat)/,
  rates: { web_searches: 10_000, storage_searches: 2_500, preview_searches: 10_000 },
};

/**
 * Kinds of tokens that cost as all input or all output. Most image models write only pictures, so the price of their output is the price of
 * pictures.
 */
export const MEDIA_AS_WHOLE: Names = {
  source: 'https://developers.openai.com/api/docs/pricing',
  date: '2026-11-22',
  names: ['input_image', 'output_image'],
};

/** The API refuses a smaller `max_output_tokens` of Responses, as Azure does. */
export const LEAST_OUTPUT: Least = {
  source:
    'https://platform.openai.com/docs/api-reference/responses/create#responses-create-max_output_tokens',
  date: '2026-11-22',
  least: 16,
};

/** Headers of its answers that pass. */
export const ANSWER_HEADERS: Names = {
  source:
    'https://platform.openai.com/docs/api-reference/debugging-requests; `openai` 6.49, `openai-poll-after-ms`',
  date: '2026-11-26',
  names: ['openai-*'],
};

/** Fields of bodies, next to `model`, that choose a model. A prompt that is an object is a stored template, which has its own model. */
export const MODEL_FIELDS: Names = {
  source: 'https://platform.openai.com/docs/api-reference/responses',
  date: '2026-11-23',
  names: ['prompt'],
};

/** Paths whose ids may have a slash. OpenAI's own ids have none. Ids of servers that speak its API (vLLM, LM Studio) have slashes. */
export const SLASHED_IDS: Names = {
  source: 'https://platform.openai.com/docs/api-reference/models/retrieve',
  date: '2026-11-26',
  names: ['/v1/models/*'],
};

/** Models of search and deep research, which have fees of their own. */
export const REFUSED_MODELS: Matching = {
  source: 'https://developers.openai.com/api/docs/pricing',
  date: '2026-11-21',
  matching: /-search-(preview|api)|deep-research/,
};

/** Endpoints that open sessions elsewhere, or hand out keys. */
export const OUTSIDE: Names = {
  source: '`openai` 7.59, resources/realtime, resources/live, resources/beta/chatkit and resources/admin',
  date: '2026-11-29',
  names: [
    '/v1/realtime',
    '/v1/realtime/calls',
    '/v1/realtime/calls/*/accept',
    '/v1/realtime/client_secrets',
    '/v1/realtime/sessions',
    '/v1/realtime/transcription_sessions',
    '/v1/realtime/translations/client_secrets',
    '/v1/live/sessions',
    '/v1/live/sessions/*/fork',
    '/v1/chatkit/sessions',
    '/v1/organization/admin_api_keys',
    '/v1/organization/projects/*/service_accounts',
  ],
};
