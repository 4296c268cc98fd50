import { type AllowList, allow, harmless, only } from '../bounds/allow-list.ts';
import { perplexitySearch, thinkingFields } from './fields.ts';

/**
 * Fields that a provider has beside those all share, by what they do to the cost of a call.
 * Sources: the request types of each provider's SDK (`groq-sdk`, `@mistralai/mistralai`, `together-ai`,
 * `fireworks-ai`, `@openrouter/sdk`, `@perplexity-ai/perplexity_ai`, `xai-sdk`), and the pages named.
 */

/** Documents are in the body, but how they are laid before the model is not documented. */
export const GROQ_FIELDS: AllowList = allow(
  harmless('metadata', 'store', 'include_reasoning', 'reasoning_format', 'disable_tool_validation'),
  harmless('citation_options'),
  { documents: 'whole window' },
);

/** Both prompts are Mistral's own, of a length it does not tell. */
export const MISTRAL_FIELDS: AllowList = allow(harmless('random_seed', 'metadata', 'prompt_cache_key'), {
  prompt_mode: 'whole window',
  safe_prompt: (on) => (on === false ? 'harmless' : 'whole window'),
});

/** https://api-docs.deepseek.com/guides/thinking_mode */
export const DEEPSEEK_FIELDS: AllowList = allow(thinkingFields, harmless('user_id'));

/** A deferred answer is fetched by another call; live search has a fee for each source. */
export const XAI_FIELDS: AllowList = allow(
  harmless('metadata', 'store', 'safety_identifier', 'prompt_cache_key'),
  {
    deferred: only('the answer would not carry the usage', false),
    search_parameters: { unbounded: 'searches are paid for, and nothing bounds their number' },
  },
);

/** Arguments of the template can make it say more. A moderating model would be paid for too. */
export const TOGETHER_FIELDS: AllowList = allow(
  thinkingFields,
  harmless('context_length_exceeded_behavior'),
  {
    chat_template_kwargs: 'whole window',
    echo: only('what is echoed may count as output', false),
    safety_model: { unbounded: 'a second model is paid for' },
  },
);

export const FIREWORKS_FIELDS: AllowList = allow(
  thinkingFields,
  harmless(
    'context_length_exceeded_behavior',
    'metadata',
    'perf_metrics_in_response',
    'prompt_cache_isolation_key',
  ),
  harmless('prompt_cache_key', 'prompt_truncate_len', 'raw_output', 'reasoning_history', 'return_token_ids'),
  harmless('reasoning_effort', 'safe_tokenization'),
  {
    echo: only('what is echoed may count as output', false),
    echo_last: only('what is echoed may count as output', 0),
    speculation: { unbounded: 'what becomes of rejected predictions is not documented' },
  },
);

/** Its plugins, other models and choice of provider change the price. */
export const OPENROUTER_FIELDS: AllowList = allow(
  thinkingFields,
  harmless('metadata', 'session_id', 'trace', 'top_a', 'prompt_cache_key', 'usage', 'reasoning_effort'),
  {
    models: { unbounded: 'other models have other prices' },
    provider: { unbounded: 'providers of a model have other prices' },
    plugins: { unbounded: 'plugins are paid for' },
  },
);

/** What it searches for is held at its listed fee for each call, at the largest context. */
export const PERPLEXITY_FIELDS: AllowList = allow(
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
    web_search_options: perplexitySearch,
  },
);
