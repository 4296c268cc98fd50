import { anthropicErrors } from '../anthropic/errors.ts';
import { anthropicCountTokens, anthropicMessages, claudeWrites } from '../anthropic/messages.ts';
import * as FACTS from '../facts/vendors/anthropic.ts';
import { type Provider, rowsOf } from '../provider.ts';

/**
 * https://platform.claude.com/docs/en/api; the `@anthropic-ai/sdk` SDK's client.ts and resources/messages.
 * The SDK sends keys as `x-api-key` before 1.0, as bearer since; the API takes `x-api-key` in both its versions
 * (https://platform.claude.com/docs/en/api/migration-2026-10-21).
 */
export const anthropic: Provider = {
  id: 'anthropic',
  priceList: 'anthropic',
  baseUrl: 'https://api.anthropic.com',
  credential: { header: 'x-api-key' },
  routes: [
    { path: '/v1/messages', dialect: anthropicMessages },
    { path: '/v1/messages/count_tokens', dialect: anthropicCountTokens },
  ],
  free: FACTS.FREE.calls,
  // The dialect is Anthropic's own, so it counts all tokens that Anthropic adds.
  rules: { addedInput: 0 },
  errors: () => anthropicErrors,
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
  modelFields: FACTS.MODEL_FIELDS.names,
  isOwnHost: true,
  models: rowsOf(FACTS.MODELS),
  cacheWrites: claudeWrites,
  makerNames: ['anthropic'],
};
