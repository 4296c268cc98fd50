import { xaiChat } from '../openai/chat-dialect.ts';
import { xaiResponses } from '../openai/responses-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/**
 * https://docs.x.ai/developers/model-capabilities/text/comparison (paths);
 * `@ai-sdk/xai` sends `max_completion_tokens` to chat completions.
 */
export const xai: Provider = {
  id: 'xai',
  baseUrl: 'https://api.x.ai',
  priceList: 'x-ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: xaiChat },
    { path: '/v1/responses', dialect: xaiResponses },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
    { method: 'GET', path: '/v1/responses/*' },
    { method: 'DELETE', path: '/v1/responses/*' },
  ],
};
