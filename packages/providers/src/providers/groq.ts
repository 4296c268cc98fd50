import { openaiChat } from '../dialects/openai-chat.ts';
import { openaiEmbeddings } from '../dialects/openai-embeddings.ts';
import { openaiResponses } from '../dialects/openai-responses.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://console.groq.com/docs/api-reference; the `groq-sdk` SDK's client.ts and resources/. */
export const groq: Provider = {
  id: 'groq',
  baseUrl: 'https://api.groq.com',
  credential: BEARER,
  routes: [
    { path: '/openai/v1/chat/completions', dialect: openaiChat },
    { path: '/openai/v1/responses', dialect: openaiResponses },
    { path: '/openai/v1/embeddings', dialect: openaiEmbeddings },
  ],
};
