import { type AllowList, allow, harmless } from '../bounds/allow-list.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { openaiSpeech } from '../openai/speech.ts';
import { BEARER, K, type ModelRows, type Provider } from '../provider.ts';

/** https://console.groq.com/docs/models and …/docs/deprecations, and the list of litellm 1.109.1 (2026-11). */
const MODELS: ModelRows = {
  'llama-3.3-70b-versatile': [128 * K, 32_768],
  'llama-3.1-8b-instant': [128 * K, 128 * K],
  'llama3-70b-8192': [8_192, 8_192],
  'llama3-8b-8192': [8_192, 8_192],
  'gemma2-9b-it': [8_192, 8_192],
  'mixtral-8x7b-32768': [32_768, 32_768],
  'mistral-saba-24b': [32_768, 32_768],
  'meta-llama/llama-4-scout-17b-16e-instruct': [128 * K, 8_192],
  'meta-llama/llama-4-maverick-17b-128e-instruct': [128 * K, 8_192],
  'moonshotai/kimi-k2-instruct': [256 * K, 16_384],
  'openai/gpt-oss-20b': [128 * K, 65_536, 'thinks'],
  'openai/gpt-oss-120b': [128 * K, 65_536, 'thinks'],
  'openai/gpt-oss-safeguard-20b': [128 * K, 65_536, 'thinks'],
  'qwen/qwen3-32b': [128 * K, 40_960, 'thinks'],
  'qwen/qwen3.8-27b': [128 * K, 16_384, 'thinks'],
  'deepseek-r1-distill-llama-70b': [128 * K, 128 * K, 'thinks'],
};

/**
 * https://console.groq.com/docs/api-reference: `service_tier` defaults to `on_demand`; all generated tokens are
 * one total. Usage always comes, in a stream as `x_groq.usage`. In a whole answer `x_groq.usage` counts hardware caches.
 */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  ownField: 'x_groq',
  errors: ['error object'],
};

/** `groq-sdk`. Documents are in the body. The prompt that contains them is not documented. */
const CHAT_FIELDS: AllowList = allow(
  harmless('metadata', 'store', 'include_reasoning', 'reasoning_format', 'disable_tool_validation'),
  harmless('citation_options'),
  { documents: 'whole window' },
);

/** https://console.groq.com/docs/api-reference; the `groq-sdk` SDK's client.ts and resources/. */
export const groq: Provider = {
  id: 'groq',
  priceList: 'groq',
  baseUrl: 'https://api.groq.com',
  credential: BEARER,
  routes: [
    { path: '/openai/v1/chat/completions', dialect: openaiChat('groq-chat', RULES, { fields: CHAT_FIELDS }) },
    { path: '/openai/v1/responses', dialect: openaiResponses('groq-responses', RULES) },
    { path: '/openai/v1/embeddings', dialect: openaiEmbeddings('groq-embeddings', RULES) },
    { path: '/openai/v1/audio/speech', dialect: openaiSpeech('groq-speech', RULES) },
  ],
  free: [
    { method: 'GET', path: '/openai/v1/models' },
    { method: 'GET', path: '/openai/v1/models/*' },
  ],
  // `openai/gpt-oss-120b` (https://console.groq.com/docs/models): OpenAI's SDKs encode the slash.
  slashedIds: ['/openai/v1/models/*'],
  // Compound systems use tools that have fees.
  rules: {
    addedInput: OPEN_WEIGHTS_ADDED,
    refusedModels: /compound/,
    // Seconds (`groq-sdk` 1.6, CompletionUsage, 2026-11-26).
    freeUsage: new Set(['queue_time', 'prompt_time', 'completion_time', 'total_time']),
  },
  // https://console.groq.com/docs/compound
  modelFields: ['compound_custom'],
  // https://console.groq.com/docs/rate-limits has the shared ones; recorded answers have `x-groq-region`.
  answerHeaders: ['x-groq-*'],
  refusals: 'undocumented',
  models: MODELS,
};
