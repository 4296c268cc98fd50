import { cohereChat, cohereEmbed, cohereRerank } from '../cohere/dialect.ts';
import { openaiChatMaxTokens } from '../openai/chat-dialect.ts';
import { openaiEmbeddings } from '../openai/embeddings-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/**
 * https://docs.cohere.com/reference; the `cohere-ai` SDK's environments.ts and Client.ts.
 * What follows OpenAI: https://docs.cohere.com/docs/compatibility-api
 */
export const cohere: Provider = {
  id: 'cohere',
  baseUrl: 'https://api.cohere.com',
  credential: BEARER,
  routes: [
    { path: '/v2/chat', dialect: cohereChat },
    { path: '/v1/chat', dialect: cohereChat },
    { path: '/v2/embed', dialect: cohereEmbed },
    { path: '/v1/embed', dialect: cohereEmbed },
    { path: '/v2/rerank', dialect: cohereRerank },
    { path: '/v1/rerank', dialect: cohereRerank },
    { path: '/compatibility/v1/chat/completions', dialect: openaiChatMaxTokens },
    { path: '/compatibility/v1/embeddings', dialect: openaiEmbeddings },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
};
