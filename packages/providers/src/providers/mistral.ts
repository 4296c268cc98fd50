import { mistralAgents, mistralChat } from '../dialects/openai-chat.ts';
import { mistralFim } from '../dialects/openai-completions.ts';
import { mistralEmbeddings } from '../dialects/openai-embeddings.ts';
import { responsesUnbounded } from '../dialects/openai-responses.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://docs.mistral.ai/api; the `@mistralai/mistralai` SDK's lib/config.ts and funcs/. */
export const mistral: Provider = {
  id: 'mistral',
  baseUrl: 'https://api.mistral.ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: mistralChat },
    { path: '/v1/fim/completions', dialect: mistralFim },
    { path: '/v1/agents/completions', dialect: mistralAgents },
    { path: '/v1/responses', dialect: responsesUnbounded },
    { path: '/v1/embeddings', dialect: mistralEmbeddings },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
};
