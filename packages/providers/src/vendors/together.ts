import { type AllowList, allow, harmless, only } from '../bounds/allow-list.ts';
import { cohereRerank } from '../cohere/embed.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { SAMPLING, thinkingFields } from '../openai/fields.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, K, type ModelRows, type Provider } from '../provider.ts';

/** https://docs.together.ai/docs/serverless-models (2026-11); no maximum of output is published. */
const MODELS: ModelRows = {
  'meta-llama/Llama-3.3-70B-Instruct-Turbo': [128 * K, undefined],
  'meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo': [128 * K, undefined],
  'meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo': [128 * K, undefined],
  'meta-llama/Meta-Llama-3.1-405B-Instruct-Turbo': [128 * K, undefined],
};

/** https://docs.together.ai/reference; the last chunk has the usage, asked or not. */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  errors: ['error object'],
};

/** `together-ai`. Arguments of the template can make its text longer. A moderating model is billed, too. */
const CHAT_FIELDS: AllowList = allow(SAMPLING, thinkingFields, harmless('context_length_exceeded_behavior'), {
  chat_template_kwargs: 'whole window',
  echo: only('the echo may count as output', false),
  safety_model: { unbounded: 'a second model is billed' },
});

const chat = openaiChat('together-chat', RULES, {
  outputBound: 'max_tokens',
  fields: CHAT_FIELDS,
  // Frames: at most the whole window.
  parts: new Map([['video_url', 'whole window']]),
});

/** https://docs.together.ai/reference; the `together-ai` SDK's client.ts and resources/ (`max_tokens` only). */
export const together: Provider = {
  id: 'together',
  priceList: 'together',
  liteLlm: ['together_ai'],
  baseUrl: 'https://api.together.ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: chat },
    {
      path: '/v1/completions',
      dialect: openaiCompletions('together-completions', RULES, { fields: SAMPLING }),
    },
    { path: '/v1/embeddings', dialect: openaiEmbeddings('together-embeddings', RULES) },
    { path: '/v1/rerank', dialect: cohereRerank },
  ],
  free: [{ method: 'GET', path: '/v1/models' }],
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  // https://docs.together.ai/docs/rate-limits; the SDK reads `x-together-file-id` when it uploads a file.
  answerHeaders: ['x-tokenlimit-*', 'x-together-*'],
  refusals: 'undocumented',
  models: MODELS,
};
