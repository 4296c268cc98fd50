import { groqChat } from '../openai/chat-dialect.ts';
import { hostedEmbeddings } from '../openai/embeddings-dialect.ts';
import { groqResponses } from '../openai/responses-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://console.groq.com/docs/api-reference; the `groq-sdk` SDK's client.ts and resources/. */
export const groq: Provider = {
  id: 'groq',
  baseUrl: 'https://api.groq.com',
  credential: BEARER,
  routes: [
    { path: '/openai/v1/chat/completions', dialect: groqChat },
    { path: '/openai/v1/responses', dialect: groqResponses },
    { path: '/openai/v1/embeddings', dialect: hostedEmbeddings },
  ],
  free: [
    { method: 'GET', path: '/openai/v1/models' },
    { method: 'GET', path: '/openai/v1/models/*' },
  ],
};
