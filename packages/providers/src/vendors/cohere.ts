import { cohereChat } from '../cohere/chat.ts';
import { cohereEmbed, cohereRerank } from '../cohere/embed.ts';
import { cohereErrors } from '../cohere/errors.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiErrors } from '../openai/errors.ts';
import { OPENAI_ADDED, OPENAI_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, K, type ModelRows, type Provider } from '../provider.ts';

/** https://docs.cohere.com/docs/models, and the list of litellm 1.109.1 (2026-11). */
const MODELS: ModelRows = {
  command: [4_096, 4_096],
  'command-light': [4_096, 4_096],
  'command-r': [128 * K, 4_096],
  'command-r-plus': [128 * K, 4_096],
  'command-r7b': [128 * K, 4_096],
  'command-a': [256 * K, 8_192],
  'command-a-vision': [128 * K, 8_192],
  'command-a-reasoning': [256 * K, 32_768, 'thinks'],
  'command-a-plus': [128 * K, 65_536, 'thinks'],
  'c4ai-aya-expanse-8b': [8 * K, 4_096],
  'c4ai-aya-expanse-32b': [128 * K, 4_096],
  'embed-v4.0': [128 * K, undefined],
};

const OPENAI: OpenaiRules = {
  input: { ...OPENAI_INPUT, perCall: OPENAI_ADDED },
  standardTier: 'default',
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object'],
};

/**
 * https://docs.cohere.com/reference; the `cohere-ai` SDK's environments.ts and Client.ts.
 * The endpoints that follow OpenAI: https://docs.cohere.com/docs/compatibility-api
 */
export const cohere: Provider = {
  id: 'cohere',
  priceList: 'cohere',
  liteLlm: ['cohere', 'cohere_chat'],
  baseUrl: 'https://api.cohere.com',
  credential: BEARER,
  routes: [
    { path: '/v2/chat', dialect: cohereChat },
    { path: '/v1/chat', dialect: cohereChat },
    { path: '/v2/embed', dialect: cohereEmbed },
    { path: '/v1/embed', dialect: cohereEmbed },
    { path: '/v2/rerank', dialect: cohereRerank },
    { path: '/v1/rerank', dialect: cohereRerank },
    {
      path: '/compatibility/v1/chat/completions',
      dialect: openaiChat('openai-chat-max-tokens', undefined, { outputBound: 'max_tokens' }),
    },
    {
      path: '/compatibility/v1/embeddings',
      dialect: openaiEmbeddings('cohere-openai-embeddings', OPENAI),
    },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
  // Cohere does not bill its template (`billed_units` excludes it).
  rules: { addedInput: 0 },
  errors: (path) => (path.startsWith('/compatibility/') ? openaiErrors : cohereErrors),
  // Headers of recorded answers, and https://docs.cohere.com/docs/rate-limits.
  answerHeaders: [
    'x-api-warning',
    'x-endpoint-*',
    'x-trial-*',
    'x-debug-trace-id',
    'x-cohere-*',
    'x-kong-*',
    'num_chars',
    'num_tokens',
  ],
  refusals: 'undocumented',
  models: MODELS,
  makerNames: ['cohere'],
};
