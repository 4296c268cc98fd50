import { anthropicMessages } from '../anthropic/dialect.ts';
import { cohereRerank } from '../cohere/dialect.ts';
import { openrouterChat } from '../openai/chat-dialect.ts';
import { openrouterCompletions } from '../openai/completions-dialect.ts';
import { hostedEmbeddings } from '../openai/embeddings-dialect.ts';
import { openrouterResponses } from '../openai/responses-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://openrouter.ai/docs/api-reference; the `@openrouter/sdk` SDK's lib/config.ts, funcs/ and chatrequest. */
export const openrouter: Provider = {
  id: 'openrouter',
  baseUrl: 'https://openrouter.ai',
  credential: BEARER,
  routes: [
    { path: '/api/v1/chat/completions', dialect: openrouterChat },
    { path: '/api/v1/completions', dialect: openrouterCompletions },
    { path: '/api/v1/responses', dialect: openrouterResponses },
    { path: '/api/v1/messages', dialect: anthropicMessages },
    { path: '/api/v1/embeddings', dialect: hostedEmbeddings },
    { path: '/api/v1/rerank', dialect: cohereRerank },
  ],
  free: [
    { method: 'GET', path: '/api/v1/models' },
    { method: 'GET', path: '/api/v1/models/*' },
  ],
};
