import { cohereRerank } from '../dialects/cohere.ts';
import { openaiChatMaxTokens } from '../dialects/openai-chat.ts';
import { openaiCompletions } from '../dialects/openai-completions.ts';
import { openaiEmbeddings } from '../dialects/openai-embeddings.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://docs.together.ai/reference; the `together-ai` SDK's client.ts and resources/ (`max_tokens` only). */
export const together: Provider = {
  id: 'together',
  baseUrl: 'https://api.together.ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: openaiChatMaxTokens },
    { path: '/v1/completions', dialect: openaiCompletions },
    { path: '/v1/embeddings', dialect: openaiEmbeddings },
    { path: '/v1/rerank', dialect: cohereRerank },
  ],
};
