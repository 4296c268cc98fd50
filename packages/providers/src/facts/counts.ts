import type { Names } from './fact.ts';

/** Counts that are counted, or change no price, and how answers name the standard tier. A vendor has more of its own (`FREE_USAGE`). */

/** Counts of chat completions. Predicted tokens are within the completion. Text and images within the prompt or the completion cost as it does. */
export const CHAT: Names = {
  source: '`openai` 6.49, CompletionUsage',
  date: '2026-11-26',
  names: [
    'prompt_tokens',
    'completion_tokens',
    'total_tokens',
    'prompt_tokens_details.cached_tokens',
    'prompt_tokens_details.cache_write_tokens',
    'prompt_tokens_details.audio_tokens',
    'prompt_tokens_details.text_tokens',
    'prompt_tokens_details.image_tokens',
    'completion_tokens_details.reasoning_tokens',
    'completion_tokens_details.audio_tokens',
    'completion_tokens_details.text_tokens',
    'completion_tokens_details.accepted_prediction_tokens',
    'completion_tokens_details.rejected_prediction_tokens',
  ],
};

/** Hits are counted, misses are the rest of the prompt. */
export const DEEPSEEK: Names = {
  source: 'https://api-docs.deepseek.com/api/create-chat-completion',
  date: '2026-11-26',
  names: ['prompt_cache_hit_tokens', 'prompt_cache_miss_tokens'],
};

/** Counts of Perplexity, and of servers of models with open weights. */
export const PERPLEXITY: Names = {
  source: '`@perplexity-ai/perplexity_ai` 0.38, UsageInfo',
  date: '2026-11-26',
  names: ['citation_tokens', 'num_search_queries', 'reasoning_tokens'],
};

/** Counts of Responses. */
export const RESPONSES: Names = {
  source: '`openai` 6.49, ResponseUsage',
  date: '2026-11-26',
  names: [
    'input_tokens',
    'output_tokens',
    'total_tokens',
    'input_tokens_details.cached_tokens',
    'input_tokens_details.cache_write_tokens',
    'input_tokens_details.text_tokens',
    'input_tokens_details.image_tokens',
    'output_tokens_details.reasoning_tokens',
    'output_tokens_details.text_tokens',
  ],
};

/** Counts of responses of Realtime sessions. Cached tokens are within those of their kind. */
export const REALTIME: Names = {
  source: '`openai` 7.59, RealtimeResponseUsage',
  date: '2026-11-29',
  names: [
    'input_tokens',
    'output_tokens',
    'total_tokens',
    'input_token_details.audio_tokens',
    'input_token_details.cached_tokens',
    'input_token_details.image_tokens',
    'input_token_details.text_tokens',
    'input_token_details.cached_tokens_details.audio_tokens',
    'input_token_details.cached_tokens_details.image_tokens',
    'input_token_details.cached_tokens_details.text_tokens',
    'output_token_details.audio_tokens',
    'output_token_details.text_tokens',
    // Within the text. The SDK's types do not have it, and models that think state it (https://github.com/BerriAI/litellm/pull/39850).
    'output_token_details.reasoning_tokens',
  ],
};

/** Counts of images. */
export const IMAGES: Names = {
  source: '`openai` 6.49, ImagesResponse.Usage',
  date: '2026-11-26',
  names: [
    'input_tokens',
    'output_tokens',
    'total_tokens',
    'input_tokens_details.image_tokens',
    'input_tokens_details.text_tokens',
    'output_tokens_details.image_tokens',
    'output_tokens_details.text_tokens',
  ],
};

/** Counts of messages. Iterations of the message itself are in its counts. */
export const ANTHROPIC: Names = {
  source: '`@anthropic-ai/sdk` 1.14, Usage, BetaUsage and BetaMessageDeltaUsage',
  date: '2026-11-26',
  names: [
    'input_tokens',
    'output_tokens',
    'cache_creation_input_tokens',
    'cache_read_input_tokens',
    'cache_creation.ephemeral_5m_input_tokens',
    'cache_creation.ephemeral_1h_input_tokens',
    'output_tokens_details.thinking_tokens',
    'iterations.*',
    'server_tool_use.web_search_requests',
  ],
};

/** Fetching pages has no fee. */
export const ANTHROPIC_FETCHES: Names = {
  source: 'https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-fetch-tool#usage-and-pricing',
  date: '2026-11-26',
  names: ['server_tool_use.web_fetch_requests'],
};

/** Counts of generateContent. */
export const GEMINI: Names = {
  source: '`@google/genai` 2.32, GenerateContentResponseUsageMetadata',
  date: '2026-11-26',
  names: [
    'promptTokenCount',
    'candidatesTokenCount',
    'thoughtsTokenCount',
    'totalTokenCount',
    'toolUsePromptTokenCount',
    'cachedContentTokenCount',
    'promptTokensDetails.*',
    'candidatesTokensDetails.*',
    'cacheTokensDetails.*',
    'toolUsePromptTokensDetails.*',
  ],
};

/** Counts of Converse. Those that end in `Count` are other names, which older services send next to them. */
export const CONVERSE: Names = {
  source: '`@aws-sdk/client-bedrock-runtime` 3.1164, TokenUsage',
  date: '2026-11-26',
  names: [
    'inputTokens',
    'outputTokens',
    'totalTokens',
    'cacheReadInputTokens',
    'cacheWriteInputTokens',
    'cacheDetails.*',
    'cacheReadInputTokenCount',
    'cacheWriteInputTokenCount',
  ],
};

/** OpenRouter's own usage of a rank. Its cost stands next to them. */
export const RANKS: Names = {
  source: '`@openrouter/sdk` 1.3, CreateRerankUsage',
  date: '2026-11-28',
  names: ['search_units', 'total_tokens'],
};

/** Only billed units cost; `tokens` has the template, too. */
export const COHERE: Names = {
  source: '`cohere-ai` 8.1, Usage and ApiMeta',
  date: '2026-11-26',
  names: [
    'tokens.*',
    'cached_tokens',
    'api_version.*',
    'billed_units.input_tokens',
    'billed_units.output_tokens',
    'billed_units.search_units',
  ],
};

/** Names of the standard tier in answers of all vendors that follow OpenAI. */
export const STANDARD_TIERS: Names = {
  source:
    'https://platform.openai.com/docs/api-reference/chat/object, https://console.groq.com/docs/api-reference, https://docs.mistral.ai/api',
  date: '2026-11-21',
  names: ['default', 'auto', 'on_demand', 'standard', 'standard_only'],
};
