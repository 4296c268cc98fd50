import { anthropicCountTokens, anthropicMessages } from '../anthropic/dialect.ts';
import type { Provider } from '../provider.ts';

/**
 * https://platform.claude.com/docs/en/api; the `@anthropic-ai/sdk` SDK's client.ts and resources/messages.
 * The SDK sends keys as `x-api-key` before 1.0, as bearer since; the API takes `x-api-key` in both its versions
 * (https://platform.claude.com/docs/en/api/migration-2026-10-21).
 */
export const anthropic: Provider = {
  id: 'anthropic',
  baseUrl: 'https://api.anthropic.com',
  credential: { header: 'x-api-key' },
  routes: [
    { path: '/v1/messages', dialect: anthropicMessages },
    { path: '/v1/messages/count_tokens', dialect: anthropicCountTokens },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
    { method: 'POST', path: '/v1/messages/count_tokens' },
  ],
};
