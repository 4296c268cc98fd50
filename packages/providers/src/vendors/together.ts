import { cohereRerank } from '../cohere/dialect.ts';
import { togetherChat } from '../openai/chat-dialect.ts';
import { togetherCompletions } from '../openai/completions-dialect.ts';
import { hostedEmbeddings } from '../openai/embeddings-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://docs.together.ai/reference; the `together-ai` SDK's client.ts and resources/ (`max_tokens` only). */
export const together: Provider = {
  id: 'together',
  baseUrl: 'https://api.together.ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: togetherChat },
    { path: '/v1/completions', dialect: togetherCompletions },
    { path: '/v1/embeddings', dialect: hostedEmbeddings },
    { path: '/v1/rerank', dialect: cohereRerank },
  ],
  free: [{ method: 'GET', path: '/v1/models' }],
};
