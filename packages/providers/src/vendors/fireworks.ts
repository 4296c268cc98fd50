import { anthropicMessages } from '../anthropic/messages.ts';
import { type AllowList, allow, harmless, only } from '../bounds/allow-list.ts';
import { cohereRerank } from '../cohere/embed.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { SAMPLING, thinkingFields } from '../openai/fields.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider } from '../provider.ts';

/**
 * The `fireworks-ai` SDK, chat/completion_create_params: only the tier `priority` differs from the standard one. The
 * last chunk has the usage, asked or not.
 */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  errors: ['error object'],
};

const FIELDS: AllowList = allow(
  SAMPLING,
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
    echo: only('the echo may count as output', false),
    echo_last: only('the echo may count as output', 0),
    speculation: { unbounded: 'the billing of rejected predictions is not documented' },
  },
);

const chat = openaiChat('fireworks-chat', RULES, { outputBound: 'max_tokens', fields: FIELDS });

/**
 * https://docs.fireworks.ai/guides/querying-text-models; the `fireworks-ai` Python SDK, whose chat completions
 * take `max_tokens` and refuse its alias `max_completion_tokens` in the same call.
 */
export const fireworks: Provider = {
  id: 'fireworks',
  priceList: 'fireworks',
  liteLlm: ['fireworks_ai', 'fireworks_ai-embedding-models'],
  baseUrl: 'https://api.fireworks.ai',
  credential: BEARER,
  routes: [
    { path: '/inference/v1/chat/completions', dialect: chat },
    {
      path: '/inference/v1/completions',
      dialect: openaiCompletions('fireworks-completions', RULES, { fields: FIELDS }),
    },
    { path: '/inference/v1/responses', dialect: openaiResponses('fireworks-responses', RULES) },
    { path: '/inference/v1/messages', dialect: anthropicMessages },
    { path: '/inference/v1/embeddings', dialect: openaiEmbeddings('fireworks-embeddings', RULES) },
    { path: '/inference/v1/rerank', dialect: cohereRerank },
  ],
  free: [
    { method: 'GET', path: '/inference/v1/models' },
    { method: 'GET', path: '/inference/v1/models/*' },
  ],
  // `accounts/fireworks/models/…` (https://docs.fireworks.ai): OpenAI's SDKs encode the slash.
  slashedIds: ['/inference/v1/models/*'],
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  // https://docs.fireworks.ai/api-reference/post-chatcompletions, `perf_metrics_in_response`.
  answerHeaders: ['fireworks-*'],
  refusals: 'undocumented',
};
