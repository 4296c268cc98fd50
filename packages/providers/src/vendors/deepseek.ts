import { anthropicMessages } from '../anthropic/dialect.ts';
import { deepseekChat } from '../openai/chat-dialect.ts';
import { deepseekCompletions } from '../openai/completions-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/**
 * https://api-docs.deepseek.com: paths begin without a version; `/v1` is accepted as an alias, `/beta` holds
 * prefix and fill-in-the-middle completion, `/anthropic` follows Anthropic's API.
 */
export const deepseek: Provider = {
  id: 'deepseek',
  baseUrl: 'https://api.deepseek.com',
  credential: BEARER,
  routes: [
    { path: '/chat/completions', dialect: deepseekChat },
    { path: '/v1/chat/completions', dialect: deepseekChat },
    { path: '/beta/chat/completions', dialect: deepseekChat },
    { path: '/beta/completions', dialect: deepseekCompletions },
    { path: '/anthropic/v1/messages', dialect: anthropicMessages },
  ],
  free: [
    { method: 'GET', path: '/models' },
    { method: 'GET', path: '/user/balance' },
  ],
};
