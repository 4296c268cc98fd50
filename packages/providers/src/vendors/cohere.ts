import { cohereChat } from '../cohere/chat.ts';
import { cohereEmbed, cohereRerank } from '../cohere/embed.ts';
import { cohereErrors } from '../cohere/errors.ts';
import * as FACTS from '../facts/vendors/cohere.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiErrors } from '../openai/errors.ts';
import { OPENAI_ADDED, OPENAI_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider, rowsOf } from '../provider.ts';

const OPENAI: OpenaiRules = { ...FACTS.OPENAI_USAGE, input: { ...OPENAI_INPUT, perCall: OPENAI_ADDED } };

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
  free: FACTS.FREE.calls,
  // Cohere does not bill its template (`billed_units` excludes it).
  rules: { addedInput: 0 },
  errors: (path) => (path.startsWith('/compatibility/') ? openaiErrors : cohereErrors),
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
  models: rowsOf(FACTS.MODELS),
  makerNames: ['cohere'],
};
