import { anthropicMessages } from '../dialects/anthropic-messages.ts';
import { cohereRerank } from '../dialects/cohere.ts';
import { openaiChat } from '../dialects/openai-chat.ts';
import { openaiCompletions } from '../dialects/openai-completions.ts';
import { openaiEmbeddings } from '../dialects/openai-embeddings.ts';
import { openaiResponses } from '../dialects/openai-responses.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://openrouter.ai/docs/api-reference; the `@openrouter/sdk` SDK's lib/config.ts, funcs/ and chatrequest. */
export const openrouter: Provider = {
  id: 'openrouter',
  baseUrl: 'https://openrouter.ai',
  credential: BEARER,
  routes: [
    { path: '/api/v1/chat/completions', dialect: openaiChat },
    { path: '/api/v1/completions', dialect: openaiCompletions },
    { path: '/api/v1/responses', dialect: openaiResponses },
    { path: '/api/v1/messages', dialect: anthropicMessages },
    { path: '/api/v1/embeddings', dialect: openaiEmbeddings },
    { path: '/api/v1/rerank', dialect: cohereRerank },
  ],
};
