import {
  type ByModel,
  type FreeCalls,
  type Group,
  K,
  type Matching,
  type Models,
  type Names,
  type UsageForm,
} from '../fact.ts';

/** Context windows and maxima of output, in tokens. */
export const MODELS: Models = {
  source: 'https://docs.perplexity.ai/getting-started/models, and the list of litellm 1.109.1',
  date: '2026-11-24',
  models: {
    sonar: { window: 128 * K, output: 128 * K },
    'sonar-pro': { window: 200_000, output: 8_192 },
    'sonar-reasoning': { window: 128 * K, output: 128 * K, thinks: true },
    'sonar-reasoning-pro': { window: 128 * K, output: 128 * K, thinks: true },
    'sonar-deep-research': { window: 128 * K, output: 128 * K, thinks: true },
  },
};

/** Each call reserves the listed fee of a search, at the largest context. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: '`@perplexity-ai/perplexity_ai` 0.38, generated/api.ts',
  date: '2026-11-27',
  entries: {
    country: { effect: 'harmless' },
    disable_search: { effect: 'harmless' },
    enable_search_classifier: { effect: 'harmless' },
    image_domain_filter: { effect: 'harmless' },
    image_format_filter: { effect: 'harmless' },
    language_preference: { effect: 'harmless' },
    last_updated_after_filter: { effect: 'harmless' },
    last_updated_before_filter: { effect: 'harmless' },
    latitude: { effect: 'harmless' },
    longitude: { effect: 'harmless' },
    return_images: { effect: 'harmless' },
    return_related_questions: { effect: 'harmless' },
    safe_search: { effect: 'harmless' },
    search_after_date_filter: { effect: 'harmless' },
    top_k: { effect: 'harmless' },
    search_before_date_filter: { effect: 'harmless' },
    search_domain_filter: { effect: 'harmless' },
    search_language_filter: { effect: 'harmless' },
    search_mode: { effect: 'harmless' },
    search_recency_filter: { effect: 'harmless' },
    num_images: { effect: 'harmless' },
    num_search_results: { effect: 'harmless' },
    response_formatting_locale: { effect: 'harmless' },
    stream_mode: {
      effect: 'harmless',
      values: ['full'],
      reason: 'its events do not carry the usage as others do',
    },
    web_search_options: { effect: 'judged', by: 'searchOptions' },
  },
} as const satisfies Group;

/** If a price depends on the context size, the highest is listed. Pro search costs more than listed. */
export const SEARCH_OPTIONS = {
  at: 'web_search_options',
  of: 'fields',
  source: '`@perplexity-ai/perplexity_ai` 0.38, generated/api.ts',
  date: '2026-11-27',
  entries: {
    search_context_size: { effect: 'harmless' },
    user_location: { effect: 'harmless' },
    image_results_enhanced_relevance: { effect: 'harmless' },
    search_type: { effect: 'harmless', values: ['fast'], reason: 'costs more than the listed price' },
  },
} as const satisfies Group;

/** The fee of a call by the size of its search, in microdollars. A price list has only the highest fee. */
export const REQUEST_FEES: ByModel<Readonly<Record<string, number>>> = {
  source: 'https://docs.perplexity.ai/docs/getting-started/pricing',
  date: '2026-11-26',
  models: {
    sonar: { low: 5_000, medium: 8_000, high: 12_000 },
    'sonar-reasoning': { low: 5_000, medium: 8_000, high: 12_000 },
    'sonar-pro': { low: 6_000, medium: 10_000, high: 14_000 },
    'sonar-reasoning-pro': { low: 6_000, medium: 10_000, high: 14_000 },
  },
};

/** How it states usage and errors. Streams end without [DONE], and reasoning is counted apart. */
export const USAGE = {
  source: 'https://docs.perplexity.ai/api-reference',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: false,
  lastWord: 'finish_reason',
  reasoningApart: true,
  errors: ['error object', 'detail'],
} as const satisfies UsageForm;

/** What Perplexity bills for these counts. */
export const FREE_USAGE: Names = {
  source: '`@perplexity-ai/perplexity_ai` 0.38, UsageInfo',
  date: '2026-11-26',
  names: ['cost.*'],
};

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://docs.perplexity.ai/docs/sonar/openai-compatibility',
  date: '2026-11-21',
  calls: [{ method: 'GET', path: '/v1/models' }],
};

/** Models of deep research, whose searches have no bound. */
export const REFUSED_MODELS: Matching = {
  source: 'https://docs.perplexity.ai/docs/getting-started/pricing',
  date: '2026-11-21',
  matching: /deep-research/,
};

/** Parts of `usage.cost`. */
export const COST_PARTS: Names = {
  source: '`@perplexity-ai/perplexity_ai` 0.38, generated/api.ts',
  date: '2026-11-27',
  names: [
    'input_tokens_cost',
    'output_tokens_cost',
    'citation_tokens_cost',
    'reasoning_tokens_cost',
    'request_cost',
    'search_queries_cost',
  ],
};

/** Models that do not search. All others do, and the pages that they read count as input. */
export const EMBEDDERS: Matching = {
  source: 'https://docs.perplexity.ai/docs/embeddings',
  date: '2026-11-24',
  matching: /^pplx-embed-/,
};

/** Endpoints that open sessions elsewhere, or hand out keys. */
export const OUTSIDE: Names = {
  source: 'https://docs.perplexity.ai/api-reference/generate-auth-token-post',
  date: '2026-11-29',
  names: ['/generate_auth_token'],
};
