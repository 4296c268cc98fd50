import { anthropicErrors } from '../anthropic/errors.ts';
import { anthropicCountTokens, anthropicMessages, claudeWrites } from '../anthropic/messages.ts';
import type { ModelRows, Provider } from '../provider.ts';

/**
 * https://platform.claude.com/docs/en/about-claude/models/overview, read through the list of litellm 1.109.1
 * (2026-11). It no longer has the models before 4.5: their rows are from that page before they were retired. The windows
 * are those without a beta header, because the gateway drops betas that widen them.
 */
const MODELS: ModelRows = {
  'claude-3-haiku': [200_000, 4_096],
  'claude-3-sonnet': [200_000, 4_096],
  'claude-3-opus': [200_000, 4_096],
  'claude-3-5-haiku': [200_000, 8_192],
  'claude-3-5-sonnet': [200_000, 8_192],
  'claude-3-7-sonnet': [200_000, 128_000, 'thinks'],
  'claude-sonnet-4': [200_000, 64_000, 'thinks'],
  'claude-sonnet-4-0': [200_000, 64_000, 'thinks'],
  'claude-opus-4': [200_000, 32_000, 'thinks'],
  'claude-opus-4-0': [200_000, 32_000, 'thinks'],
  'claude-opus-4-1': [200_000, 32_000, 'thinks'],
  'claude-haiku-4-5': [200_000, 64_000, 'thinks'],
  'claude-sonnet-4-5': [200_000, 64_000, 'thinks'],
  'claude-opus-4-5': [200_000, 64_000, 'thinks'],
  'claude-sonnet-4-6': [1_000_000, 128_000, 'thinks'],
  'claude-opus-4-6': [1_000_000, 128_000, 'thinks'],
  'claude-opus-4-7': [1_000_000, 128_000, 'thinks'],
  'claude-opus-4-8': [1_000_000, 128_000, 'thinks'],
  'claude-sonnet-5': [1_000_000, 128_000, 'thinks'],
  'claude-opus-5': [1_000_000, 128_000, 'thinks'],
  'claude-fable-5': [1_000_000, 128_000, 'thinks'],
  'claude-mythos-5': [1_000_000, 128_000, 'thinks'],
  'claude-fable-5-1': [1_000_000, 128_000, 'thinks'],
  'claude-mythos-5-1': [1_000_000, 128_000, 'thinks'],
  'claude-haiku-5-5': [1_000_000, 128_000, 'thinks'],
  'claude-sonnet-5-5': [1_000_000, 128_000, 'thinks'],
  'claude-opus-5-5': [1_000_000, 128_000, 'thinks'],
};

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
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
    { method: 'POST', path: '/v1/messages/count_tokens' },
  ],
  // The dialect is Anthropic's own, so it counts all tokens that Anthropic adds.
  rules: { addedInput: 0 },
  errors: () => anthropicErrors,
  // https://platform.claude.com/docs/en/api/rate-limits and …/api/overview: limits of three tiers, and the organization's id.
  answerHeaders: ['anthropic-*'],
  refusals: 'undocumented',
  modelFields: ['fallbacks'],
  statesInput: true,
  models: MODELS,
  cacheWrites: claudeWrites,
  makerNames: ['anthropic'],
};
