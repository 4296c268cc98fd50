import { mistralChat } from '../dialects/openai-chat.ts';
import { mistralFim } from '../dialects/openai-completions.ts';
import { openaiEmbeddings } from '../dialects/openai-embeddings.ts';
import { openaiResponses } from '../dialects/openai-responses.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://docs.mistral.ai/api; the `@mistralai/mistralai` SDK's lib/config.ts and funcs/. */
export const mistral: Provider = {
  id: 'mistral',
  baseUrl: 'https://api.mistral.ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: mistralChat },
    { path: '/v1/fim/completions', dialect: mistralFim },
    { path: '/v1/agents/completions', dialect: mistralChat },
    { path: '/v1/responses', dialect: openaiResponses },
    { path: '/v1/embeddings', dialect: openaiEmbeddings },
  ],
};
