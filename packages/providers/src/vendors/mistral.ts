import { mistralAgents, mistralChat } from '../openai/chat-dialect.ts';
import { mistralFim } from '../openai/completions-dialect.ts';
import { mistralEmbeddings } from '../openai/embeddings-dialect.ts';
import { responsesUnbounded } from '../openai/responses-dialect.ts';
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
