import { type AllowList, allow, harmless, only } from '../bounds/allow-list.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiImages } from '../openai/images.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { statedMicrousd } from '../prices/stated-cost.ts';
import { BEARER, K, type ModelRows, type Provider } from '../provider.ts';

/**
 * https://docs.x.ai/docs/models, read through the list of litellm 1.109.1 (2026-11) and @pydantic/genai-prices 0.1.8.
 * No maximum of output is published apart from the window.
 */
const MODELS: ModelRows = {
  'grok-2': [128 * K, 128 * K],
  'grok-3': [128 * K, 128 * K],
  'grok-3-fast': [128 * K, 128 * K],
  'grok-3-mini': [128 * K, 128 * K, 'thinks'],
  'grok-3-mini-fast': [128 * K, 128 * K, 'thinks'],
  'grok-4': [256 * K, 256 * K, 'thinks'],
  'grok-4-fast-reasoning': [2_000_000, 2_000_000, 'thinks'],
  'grok-4-fast-non-reasoning': [2_000_000, 2_000_000],
  'grok-4-1-fast-reasoning': [2_000_000, 2_000_000, 'thinks'],
  'grok-4-1-fast-non-reasoning': [2_000_000, 2_000_000],
  'grok-4.20': [K * K, K * K, 'thinks'],
  'grok-4.20-reasoning': [K * K, K * K, 'thinks'],
  'grok-4.20-non-reasoning': [K * K, K * K],
  'grok-4.3': [K * K, K * K, 'thinks'],
  'grok-4.5': [500_000, 500_000, 'thinks'],
  'grok-4.6': [500_000, 500_000, 'thinks'],
  'grok-4.7': [500_000, 500_000, 'thinks'],
  'grok-code-fast-1': [256 * K, 256 * K, 'thinks'],
  'grok-build-0.1': [256 * K, 256 * K, 'thinks'],
};

/** https://docs.x.ai/docs/api-reference: reasoning is counted separately from the completion. */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  reasoningApart: true,
  errors: ['error object', 'error text'],
};

/** `xai-sdk`. Another call fetches a deferred answer. Live search has a fee for each source. */
const CHAT_FIELDS: AllowList = allow(harmless('metadata', 'store', 'safety_identifier', 'prompt_cache_key'), {
  deferred: only('the answer would not carry the usage', false),
  search_parameters: { unbounded: 'searches have a fee, and their number has no bound' },
});

/**
 * https://docs.x.ai/docs/guides/image-generation: 1 to 10 images. A price for each image must be the dearest of its resolutions
 * and qualities.
 */
const IMAGE_FIELDS: AllowList = harmless('aspect_ratio', 'resolution');

const TICKS_PER_USD = 10_000_000_000;

/**
 * https://docs.x.ai/developers/model-capabilities/text/comparison (paths);
 * `@ai-sdk/xai` sends `max_completion_tokens` to chat completions.
 */
export const xai: Provider = {
  id: 'xai',
  baseUrl: 'https://api.x.ai',
  traceName: 'x_ai',
  priceList: 'x-ai',
  liteLlm: ['xai'],
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: openaiChat('xai-chat', RULES, { fields: CHAT_FIELDS }) },
    { path: '/v1/responses', dialect: openaiResponses('xai-responses', RULES) },
    { path: '/v1/images/generations', dialect: openaiImages('xai-images', RULES, IMAGE_FIELDS) },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
    { method: 'GET', path: '/v1/responses/*' },
    { method: 'DELETE', path: '/v1/responses/*' },
  ],
  rules: {
    // The whole cost of a call, its tools included: https://docs.x.ai/developers/cost-tracking (2026-11).
    stated: ({ cost_in_usd_ticks }) => ({ microusd: statedMicrousd(cost_in_usd_ticks, TICKS_PER_USD) }),
    // It adds prompts of its own, of several hundred tokens.
    addedInput: 4_096,
    // xAI does not document that the bound covers reasoning.
    coversReasoning: (model) => /non-reasoning|^grok-2/.test(model),
    refusedModels: /multi-agent/,
    // What xAI bills for these counts, in parts of a dollar (https://docs.x.ai/docs/api-reference, 2026-11-26).
    freeUsage: new Set(['cost_in_usd_ticks']),
  },
  /**
   * https://docs.x.ai/docs/pricing#usage-guidelines-violation-fee: xAI charges $0.05 for a request whose violation it
   * finds before generation, and the generation otherwise. Such a 403 has the code of missing permissions and the
   * text `Content violates usage guidelines. Team: …, Failed check: …` in `error`.
   */
  // https://docs.x.ai/developers/faq/security, and headers of recorded answers (2026-11).
  answerHeaders: ['x-zero-data-retention', 'x-data-retention', 'x-metrics-*', 'x-grok-*'],
  refusals: [
    {
      status: 403,
      messageStart: 'Content violates usage guidelines',
      billing: 'billed',
      feeMicrousd: 50_000,
    },
  ],
  models: MODELS,
  makerNames: ['x-ai', 'xai'],
};
