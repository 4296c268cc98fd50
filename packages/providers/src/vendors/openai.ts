import { openaiChat } from '../openai/chat-dialect.ts';
import { openaiCompletions } from '../openai/completions-dialect.ts';
import { openaiEmbeddings } from '../openai/embeddings-dialect.ts';
import { openaiResponses } from '../openai/responses-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/** https://platform.openai.com/docs/api-reference; the `openai` SDK's client.ts and resources/. */
export const openai: Provider = {
  id: 'openai',
  baseUrl: 'https://api.openai.com',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: openaiChat },
    { path: '/v1/responses', dialect: openaiResponses },
    { path: '/v1/completions', dialect: openaiCompletions },
    { path: '/v1/embeddings', dialect: openaiEmbeddings },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
    { method: 'GET', path: '/v1/chat/completions' },
    { method: 'GET', path: '/v1/chat/completions/*' },
    { method: 'GET', path: '/v1/chat/completions/*/messages' },
    { method: 'POST', path: '/v1/chat/completions/*' },
    { method: 'DELETE', path: '/v1/chat/completions/*' },
    { method: 'GET', path: '/v1/responses/*' },
    { method: 'GET', path: '/v1/responses/*/input_items' },
    { method: 'POST', path: '/v1/responses/*/cancel' },
    { method: 'DELETE', path: '/v1/responses/*' },
    { method: 'POST', path: '/v1/responses/input_tokens' },
  ],
};
