import { allow, harmless } from '../bounds/allow-list.ts';
import { textOf } from '../json.ts';
import { openaiChat } from '../openai/chat.ts';
import { AS_OPENAI, openaiCompletions } from '../openai/completions.ts';
import type { Encoding } from '../openai/count-tokens.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { CACHE_AND_RECORDS } from '../openai/fields.ts';
import { openaiImages } from '../openai/images.ts';
import { openaiResponses } from '../openai/responses.ts';
import type { ServerTools } from '../openai/responses-fields.ts';
import { OPENAI_ADDED, OPENAI_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { openaiSpeech } from '../openai/speech.ts';
import type { ModelPrice } from '../prices/rates.ts';
import { BEARER, type ModelRows, type Provider } from '../provider.ts';
import type { VendorRules } from '../vendor-rules.ts';

/**
 * https://platform.openai.com/docs/models, each model's page, read through the list of litellm 1.109.1 (2026-11).
 * The window of those with 272,000 tokens of input is 400,000, that of those with 922,000 is 1,050,000.
 */
export const OPENAI_MODELS: ModelRows = {
  'gpt-3.5-turbo': [16_385, 4_096],
  'gpt-4': [8_192, 8_192],
  'gpt-4-32k': [32_768, 32_768],
  'gpt-4-1106-preview': [128_000, 4_096],
  'gpt-4-0125-preview': [128_000, 4_096],
  'gpt-4-turbo': [128_000, 4_096],
  'gpt-4o': [128_000, 16_384],
  'gpt-4o-mini': [128_000, 16_384],
  'gpt-4o-search-preview': [128_000, 16_384],
  'gpt-4o-mini-search-preview': [128_000, 16_384],
  'chatgpt-4o': [128_000, 16_384],
  'gpt-4.1': [1_047_576, 32_768],
  'gpt-4.1-mini': [1_047_576, 32_768],
  'gpt-4.1-nano': [1_047_576, 32_768],
  'gpt-5': [400_000, 128_000, 'thinks'],
  'gpt-5-mini': [400_000, 128_000, 'thinks'],
  'gpt-5-nano': [400_000, 128_000, 'thinks'],
  'gpt-5-codex': [400_000, 128_000, 'thinks'],
  'gpt-5-pro': [400_000, 272_000, 'thinks'],
  'gpt-5-chat': [128_000, 16_384, 'thinks'],
  'gpt-5-search-api': [400_000, 128_000, 'thinks'],
  'gpt-5.1': [400_000, 128_000, 'thinks'],
  'gpt-5.1-codex': [400_000, 128_000, 'thinks'],
  'gpt-5.1-codex-mini': [400_000, 128_000, 'thinks'],
  'gpt-5.1-codex-max': [400_000, 128_000, 'thinks'],
  'gpt-5.1-chat': [128_000, 16_384, 'thinks'],
  'gpt-5.2': [400_000, 128_000, 'thinks'],
  'gpt-5.2-codex': [400_000, 128_000, 'thinks'],
  'gpt-5.2-pro': [400_000, 128_000, 'thinks'],
  'gpt-5.2-chat': [128_000, 16_384, 'thinks'],
  'gpt-5.3-codex': [400_000, 128_000, 'thinks'],
  'gpt-5.3-chat': [128_000, 16_384, 'thinks'],
  'gpt-5.4': [1_050_000, 128_000, 'thinks'],
  'gpt-5.4-pro': [1_050_000, 128_000, 'thinks'],
  'gpt-5.4-mini': [400_000, 128_000, 'thinks'],
  'gpt-5.4-nano': [400_000, 128_000, 'thinks'],
  'gpt-5.5': [1_050_000, 128_000, 'thinks'],
  'gpt-5.5-pro': [1_050_000, 128_000, 'thinks'],
  'gpt-5.6-luna': [1_050_000, 128_000, 'thinks'],
  'gpt-5.6-sol': [1_050_000, 128_000, 'thinks'],
  'gpt-5.6-terra': [1_050_000, 128_000, 'thinks'],
  'gpt-6-astra': [1_050_000, 128_000, 'thinks'],
  'gpt-6-luna': [1_050_000, 128_000, 'thinks'],
  'gpt-6-sol': [1_050_000, 128_000, 'thinks'],
  'gpt-6.1-sol': [1_050_000, 128_000, 'thinks'],
  'gpt-6.1-terra': [1_050_000, 128_000, 'thinks'],
  o1: [200_000, 100_000, 'thinks'],
  'o1-pro': [200_000, 100_000, 'thinks'],
  'o1-preview': [128_000, 32_768, 'thinks'],
  'o1-mini': [128_000, 65_536, 'thinks'],
  o3: [200_000, 100_000, 'thinks'],
  'o3-pro': [200_000, 100_000, 'thinks'],
  'o3-mini': [200_000, 100_000, 'thinks'],
  'o3-deep-research': [200_000, 100_000, 'thinks'],
  'o4-mini': [200_000, 100_000, 'thinks'],
  'o4-mini-deep-research': [200_000, 100_000, 'thinks'],
};

/**
 * Most input tokens of one image, for the models whose documentation states how to compute it
 * (https://platform.openai.com/docs/guides/images-vision#calculating-costs). Models counted in tiles scale an image
 * to at most 768 × 2,048 pixels, 8 tiles; those counted in patches to at most 1,536 patches, times a factor.
 * Later models have other budgets (`detail: original`) and factors that the page does not state. They are not listed,
 * so their images count as the whole context window.
 */
const IMAGE_TOKENS: ReadonlyMap<string, number> = new Map([
  ['gpt-4o', 85 + 8 * 170],
  ['gpt-4o-mini', 2_833 + 8 * 5_667],
  // The page describes tiles (1,445) and patches without a factor. This is the larger.
  ['gpt-4.1', 1_536],
  ['gpt-4.1-mini', Math.ceil(1_536 * 1.62)],
  ['gpt-4.1-nano', Math.ceil(1_536 * 2.46)],
  ['o1', 75 + 8 * 150],
  ['o3', 75 + 8 * 150],
  ['o4-mini', Math.ceil(1_536 * 1.72)],
  ['gpt-5', 70 + 8 * 140],
  ['gpt-5-mini', Math.ceil(1_536 * 1.62)],
  ['gpt-5-nano', Math.ceil(1_536 * 2.46)],
]);

/**
 * Models by their encoding, as tiktoken 0.14.0 maps names (https://github.com/openai/tiktoken, tiktoken/model.py: any name
 * that begins with `gpt-5` has o200k_base). Only names that are listed here are counted, so that a later model of another
 * encoding is not taken for one of these. Models that run several times or bring prompts of their own (`-pro`, `-chat`) are
 * not listed.
 */
const ENCODINGS: ReadonlyMap<string, Encoding> = new Map<string, Encoding>([
  ...['gpt-3.5-turbo', 'gpt-4', 'gpt-4-turbo'].map((name) => [name, 'cl100k_base'] as const),
  ...[
    ...['gpt-4o', 'gpt-4o-mini', 'gpt-4.1', 'gpt-4.1-mini', 'gpt-4.1-nano', 'o1', 'o3', 'o3-mini', 'o4-mini'],
    ...['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'gpt-5-codex', 'gpt-5.1', 'gpt-5.1-codex', 'gpt-5.1-codex-mini'],
    ...['gpt-5.1-codex-max', 'gpt-5.2', 'gpt-5.2-codex', 'gpt-5.3-codex', 'gpt-5.4', 'gpt-5.4-mini'],
    ...['gpt-5.4-nano', 'gpt-5.5', 'gpt-5.6-luna', 'gpt-5.6-sol', 'gpt-5.6-terra'],
  ].map((name) => [name, 'o200k_base'] as const),
]);

/** Most tokens of one image. Undefined if the model's maximum is not published. */
const imageTokens = (model: unknown): number | undefined =>
  IMAGE_TOKENS.get(textOf(model).replace(/-\d{4}-\d{2}-\d{2}$/, ''));

/**
 * Searches and file searches have listed fees. `web_search_preview` costs more at models that do not reason,
 * and containers, images and MCP servers have fees of other kinds, so none of these has a bound.
 * https://platform.openai.com/docs/pricing#built-in-tools
 */
const SERVER_TOOLS: ServerTools = new Map([
  ['web_search', 'web_searches'],
  ['web_search_2025_08_26', 'web_searches'],
  ['file_search', 'storage_searches'],
]);

/** Rules about money that OpenAI and its models on Azure share. Search and deep research models have fees of their own. */
export const OPENAI_VENDOR_RULES: VendorRules = {
  addedInput: OPENAI_ADDED,
  refusedModels: /-search-(preview|api)|deep-research/,
};

/** https://platform.openai.com/docs/api-reference; the bound includes reasoning (guides/reasoning). */
export const OPENAI_RULES: OpenaiRules = {
  input: { ...OPENAI_INPUT, imageTokens },
  standardTier: 'default',
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object'],
};

/** Fields that chat completions have at OpenAI and on Azure. Files are text and pictures: at most the whole window. */
export const OPENAI_CHAT = {
  fields: allow(CACHE_AND_RECORDS, harmless('verbosity')),
  parts: new Map([['file', 'whole window'] as const]),
};

/** OpenAI and Azure refuse a `max_output_tokens` below 16. */
export const RESPONSES_MINIMUM = 16;

/** $15 and $30 for a million characters: https://developers.openai.com/api/docs/models/tts-1.md, tts-1-hd.md. */
const UNIT_PRICES: ReadonlyMap<string, ModelPrice> = new Map([
  ['tts-1', { characters: 15 }],
  ['tts-1-hd', { characters: 30 }],
]);

/**
 * Sound of the models that chat with it, which lists leave out: https://developers.openai.com/api/docs/models, the page of each model, and of
 * the first snapshot the prices at its release (2026-11).
 */
const SOUND: readonly (readonly [models: RegExp, read: number, written: number])[] = [
  [/^gpt-4o-audio-preview-2024-10-01$/, 100, 200],
  [/^gpt-4o-audio-preview(-\d{4}-\d\d-\d\d)?$/, 40, 80],
  [/^(gpt-4o-mini-audio-preview|gpt-audio-mini)(-\d{4}-\d\d-\d\d)?$/, 10, 20],
  [/^gpt-audio(-\d{4}-\d\d-\d\d)?$/, 32, 64],
];

/**
 * A search costs $10 for 1,000, and one in files $2.50. A search of `web_search_preview` costs $25 for 1,000 at models that do not reason, and $10 at those that do:
 * https://developers.openai.com/api/docs/pricing#tools (2026-11). Their names say which models reason, except of the chat models of GPT-5.
 */
function publishedRates(model: string): ModelPrice {
  const [, read, written] = SOUND.find(([models]) => models.test(model)) ?? [];
  const plain = /^gpt-4(o|\.1)/.test(model);
  const reasons = /^(o\d|gpt-[5-9])/.test(model) && !model.includes('chat');
  return {
    ...((plain || reasons) && { web_searches: 10_000, storage_searches: 2_500 }),
    ...(read && written && { input_audio: read * 1_000_000, output_audio: written * 1_000_000 }),
    ...(plain && { preview_searches: 25_000 }),
    ...(reasons && { preview_searches: 10_000 }),
  };
}

/** https://platform.openai.com/docs/api-reference; the `openai` SDK's client.ts and resources/. */
export const openai: Provider = {
  id: 'openai',
  priceList: 'openai',
  liteLlm: ['openai', 'text-completion-openai'],
  baseUrl: 'https://api.openai.com',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: openaiChat('openai-chat', OPENAI_RULES, OPENAI_CHAT) },
    {
      path: '/v1/responses',
      dialect: openaiResponses('openai-responses', OPENAI_RULES, {
        serverTools: SERVER_TOOLS,
        minimum: RESPONSES_MINIMUM,
      }),
    },
    {
      path: '/v1/completions',
      // Completions have no tiers.
      dialect: openaiCompletions(
        'openai-completions',
        { ...OPENAI_RULES, standardTier: undefined },
        AS_OPENAI,
      ),
    },
    { path: '/v1/embeddings', dialect: openaiEmbeddings('openai-embeddings', OPENAI_RULES) },
    { path: '/v1/images/generations', dialect: openaiImages('openai-images', OPENAI_RULES) },
    { path: '/v1/audio/speech', dialect: openaiSpeech('openai-speech', OPENAI_RULES) },
  ],
  free: [
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
    // "The moderation endpoint is free to use" (https://platform.openai.com/docs/guides/moderation, 2026-11).
    { method: 'POST', path: '/v1/moderations' },
  ],
  // Its own ids have no slash, but those of servers that speak its API do: vLLM, LM Studio.
  slashedIds: ['/v1/models/*'],
  rules: OPENAI_VENDOR_RULES,
  // https://platform.openai.com/docs/api-reference/debugging-requests; the `openai` SDK's `openai-poll-after-ms`.
  answerHeaders: ['openai-*'],
  refusals: 'undocumented',
  // As an object it is a stored template, which has a model of its own.
  modelFields: ['prompt'],
  models: OPENAI_MODELS,
  encodings: ENCODINGS,
  unitPrices: UNIT_PRICES,
  publishedRates,
  // The output of most models of images is pictures alone, so its price is theirs.
  mediaAsWhole: new Set(['input_image', 'output_image']),
  makerNames: ['openai'],
};
