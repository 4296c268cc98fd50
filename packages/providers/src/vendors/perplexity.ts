import { type AllowList, allow, harmless, judge, only } from '../bounds/allow-list.ts';
import { isJsonObject } from '../json.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { type ReadStated, statedInParts } from '../prices/stated-cost.ts';
import { BEARER, K, type ModelRows, type Provider } from '../provider.ts';

/** https://docs.perplexity.ai/getting-started/models, and the list of litellm 1.109.1 (2026-11). */
const MODELS: ModelRows = {
  sonar: [128 * K, 128 * K],
  'sonar-pro': [200_000, 8_192],
  'sonar-reasoning': [128 * K, 128 * K, 'thinks'],
  'sonar-reasoning-pro': [128 * K, 128 * K, 'thinks'],
  'sonar-deep-research': [128 * K, 128 * K, 'thinks'],
};

/** https://docs.perplexity.ai/api-reference: streams end without [DONE], and reasoning is counted apart. */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: false,
  lastWord: 'finish_reason',
  reasoningApart: true,
  errors: ['error object', 'detail'],
};

/** `@perplexity-ai/perplexity_ai`. Searches are held at their listed fee for each call, at the largest context. */
const CHAT_FIELDS: AllowList = allow(
  harmless(
    'country',
    'disable_search',
    'enable_search_classifier',
    'image_domain_filter',
    'image_format_filter',
  ),
  harmless(
    'language_preference',
    'last_updated_after_filter',
    'last_updated_before_filter',
    'latitude',
    'longitude',
  ),
  harmless('return_images', 'return_related_questions', 'safe_search', 'search_after_date_filter', 'top_k'),
  harmless('search_before_date_filter', 'search_domain_filter', 'search_language_filter', 'search_mode'),
  harmless('search_recency_filter', 'num_images', 'num_search_results', 'response_formatting_locale'),
  {
    stream_mode: only('its events do not carry the usage as others do', 'full'),
    // Prices by context size are listed at their highest; pro search costs more than listed.
    web_search_options: (value) =>
      isJsonObject(value) ? judge(SEARCH_OPTIONS, value) : { unbounded: 'is not an object' },
  },
);

const SEARCH_OPTIONS: AllowList = allow(
  harmless('search_context_size', 'user_location', 'image_results_enhanced_relevance'),
  { search_type: only('costs more than the listed price', 'fast') },
);

const chat = openaiChat('perplexity-chat', RULES, { outputBound: 'max_tokens', fields: CHAT_FIELDS });

/** The number of searches of an agent has no bound. */
const agents = openaiResponses('perplexity-responses', undefined);

const embeddings = openaiEmbeddings('perplexity-embeddings', RULES);

/**
 * The fee of a call by the size of its search, in microdollars. A price list has the dearest only.
 * https://docs.perplexity.ai/docs/getting-started/pricing (2026-11)
 */
const REQUEST_FEES: ReadonlyMap<string, Readonly<Record<string, number>>> = new Map([
  ['sonar', { low: 5_000, medium: 8_000, high: 12_000 }],
  ['sonar-reasoning', { low: 5_000, medium: 8_000, high: 12_000 }],
  ['sonar-pro', { low: 6_000, medium: 10_000, high: 14_000 }],
  ['sonar-reasoning-pro', { low: 6_000, medium: 10_000, high: 14_000 }],
]);

const COST_PARTS = [
  ...['input_tokens_cost', 'output_tokens_cost', 'citation_tokens_cost', 'reasoning_tokens_cost'],
  ...['request_cost', 'search_queries_cost'],
];

/** `usage.cost` and `usage.search_context_size` (`@perplexity-ai/perplexity_ai`, generated/api.ts). */
const stated: ReadStated = ({ cost, search_context_size: size }, model) => {
  const fees = REQUEST_FEES.get(model);
  const known = typeof size === 'string' && fees && Object.hasOwn(fees, size) ? fees[size] : undefined;
  const microusd = statedInParts(cost, 'total_cost', COST_PARTS);
  return { microusd, requestMicrousd: known };
};

/**
 * https://docs.perplexity.ai/docs/sonar/openai-compatibility: `/v1/sonar` and `/v1/agent` are the canonical
 * names of `/chat/completions` and `/v1/responses`; the `@perplexity-ai/perplexity_ai` SDK's generated/api.ts.
 */
export const perplexity: Provider = {
  id: 'perplexity',
  priceList: 'perplexity',
  baseUrl: 'https://api.perplexity.ai',
  credential: BEARER,
  routes: [
    { path: '/chat/completions', dialect: chat },
    { path: '/v1/sonar', dialect: chat },
    { path: '/v1/responses', dialect: agents },
    { path: '/v1/agent', dialect: agents },
    { path: '/v1/embeddings', dialect: embeddings },
  ],
  free: [{ method: 'GET', path: '/v1/models' }],
  rules: {
    stated,
    // Every model searches, and the pages that it reads count as input. Only embeddings do not search
    // (https://docs.perplexity.ai/docs/embeddings).
    addedInput: (model) => (/^pplx-embed-/.test(model) ? OPEN_WEIGHTS_ADDED : 'whole window'),
    // https://docs.perplexity.ai/getting-started/pricing: a call of Sonar has a fee, which depends on its search.
    feePerRequest: (model) => !/^pplx-embed-/.test(model),
    // The number of searches of a deep research call has no bound.
    refusedModels: /deep-research/,
    // What Perplexity bills for these counts (`@perplexity-ai/perplexity_ai` 0.38, UsageInfo, 2026-11-26).
    freeUsage: new Set(['cost.*']),
  },
  refusals: 'undocumented',
  models: MODELS,
  makerNames: ['perplexity'],
  resells: true,
};
