import { groqChat } from '../dialects/openai-chat.ts';
import { hostedEmbeddings } from '../dialects/openai-embeddings.ts';
import { groqResponses } from '../dialects/openai-responses.ts';
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
