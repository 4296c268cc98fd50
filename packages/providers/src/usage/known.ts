import type { KnownCounts } from './known-counts.ts';

/**
 * The counts of each API family that are counted, or change no price. A vendor's file has those of one vendor (`freeUsage`). Read
 * from the types of the SDKs on 2026-11-26.
 */

/**
 * `openai` 6.49, CompletionUsage. Predicted tokens are within the completion. Text and images within the prompt or the completion
 * cost as it does.
 */
export const CHAT_COUNTS: KnownCounts = new Set([
  ...['prompt_tokens', 'completion_tokens', 'total_tokens'],
  ...['cached_tokens', 'cache_write_tokens', 'audio_tokens', 'text_tokens', 'image_tokens'].map(
    (count) => `prompt_tokens_details.${count}`,
  ),
  ...['reasoning_tokens', 'audio_tokens', 'text_tokens'].map((count) => `completion_tokens_details.${count}`),
  ...['accepted', 'rejected'].map((kind) => `completion_tokens_details.${kind}_prediction_tokens`),
  // DeepSeek's (https://api-docs.deepseek.com/api/create-chat-completion): hits are counted, misses are the rest of the prompt.
  ...['prompt_cache_hit_tokens', 'prompt_cache_miss_tokens'],
  // Perplexity's (`@perplexity-ai/perplexity_ai` 0.38, UsageInfo), and servers of models with open weights.
  ...['citation_tokens', 'num_search_queries', 'reasoning_tokens'],
]);

/** `openai` 6.49, CreateEmbeddingResponse.Usage: no output. */
export const EMBEDDINGS_COUNTS: KnownCounts = new Set(
  [...CHAT_COUNTS].filter((name) => !name.startsWith('completion_tokens')),
);

/** `openai` 6.49, ResponseUsage. */
export const RESPONSES_COUNTS: KnownCounts = new Set([
  ...['input_tokens', 'output_tokens', 'total_tokens'],
  ...['cached_tokens', 'cache_write_tokens', 'text_tokens', 'image_tokens'].map(
    (count) => `input_tokens_details.${count}`,
  ),
  ...['reasoning_tokens', 'text_tokens'].map((count) => `output_tokens_details.${count}`),
]);

/** `openai` 6.49, ImagesResponse.Usage. */
export const IMAGES_COUNTS: KnownCounts = new Set([
  ...['input_tokens', 'output_tokens', 'total_tokens'],
  ...['input', 'output'].flatMap((side) => [
    `${side}_tokens_details.image_tokens`,
    `${side}_tokens_details.text_tokens`,
  ]),
]);

/**
 * `@anthropic-ai/sdk` 1.14, Usage, BetaUsage and BetaMessageDeltaUsage. Fetching pages has no fee
 * (https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-fetch-tool#usage-and-pricing). Iterations of the message itself are
 * in its counts.
 */
export const ANTHROPIC_COUNTS: KnownCounts = new Set([
  ...['input_tokens', 'output_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'],
  ...['cache_creation.ephemeral_5m_input_tokens', 'cache_creation.ephemeral_1h_input_tokens'],
  ...['output_tokens_details.thinking_tokens', 'iterations.*'],
  ...['server_tool_use.web_search_requests', 'server_tool_use.web_fetch_requests'],
]);

/**
 * `@google/genai` 2.32, GenerateContentResponseUsageMetadata.
 */
export const GEMINI_COUNTS: KnownCounts = new Set([
  ...['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'totalTokenCount'],
  ...['toolUsePromptTokenCount', 'cachedContentTokenCount'],
  ...['promptTokensDetails.*', 'candidatesTokensDetails.*', 'cacheTokensDetails.*'],
  'toolUsePromptTokensDetails.*',
]);

/** `@aws-sdk/client-bedrock-runtime` 3.1164, TokenUsage. */
export const CONVERSE_COUNTS: KnownCounts = new Set([
  ...['inputTokens', 'outputTokens', 'totalTokens'],
  ...['cacheReadInputTokens', 'cacheWriteInputTokens', 'cacheDetails.*'],
  // Other names of the same counts, which older services send next to them.
  ...['cacheReadInputTokenCount', 'cacheWriteInputTokenCount'],
]);

/** `cohere-ai` 8.1, Usage and ApiMeta. Only billed units cost; `tokens` has the template, too. */
export const COHERE_COUNTS: KnownCounts = new Set([
  ...['tokens.*', 'cached_tokens', 'api_version.*'],
  ...['input_tokens', 'output_tokens', 'search_units'].map((unit) => `billed_units.${unit}`),
]);
