import { anthropicMessages } from '../anthropic/messages.ts';
import { allow, harmless } from '../bounds/allow-list.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { thinkingFields } from '../openai/fields.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, K, type ModelRows, type Provider } from '../provider.ts';

/**
 * https://api-docs.deepseek.com/quick_start/pricing, read through the list of litellm 1.109.1 (2026-11). The names
 * without a version have referred to several models, so their rows are those of the largest.
 */
const MODELS: ModelRows = {
  'deepseek-chat': [K * K, 384 * K, 'thinks'],
  'deepseek-reasoner': [K * K, 384 * K, 'thinks'],
  'deepseek-v4-flash': [K * K, 384 * K, 'thinks'],
  'deepseek-v4-pro': [K * K, 384 * K, 'thinks'],
};

/** https://api-docs.deepseek.com/api/create-chat-completion; `max_tokens` includes the chain of thought. */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object'],
};

/** https://api-docs.deepseek.com/guides/thinking_mode */
const chat = openaiChat('deepseek-chat', RULES, {
  outputBound: 'max_tokens',
  fields: allow(thinkingFields, harmless('user_id')),
});

/**
 * https://api-docs.deepseek.com: paths begin without a version; `/v1` is accepted as an alias, `/beta` holds
 * prefix and fill-in-the-middle completion, `/anthropic` follows Anthropic's API.
 */
export const deepseek: Provider = {
  id: 'deepseek',
  priceList: 'deepseek',
  baseUrl: 'https://api.deepseek.com',
  credential: BEARER,
  routes: [
    { path: '/chat/completions', dialect: chat },
    { path: '/v1/chat/completions', dialect: chat },
    { path: '/beta/chat/completions', dialect: chat },
    { path: '/beta/completions', dialect: openaiCompletions('deepseek-completions', RULES) },
    { path: '/anthropic/v1/messages', dialect: anthropicMessages },
  ],
  free: [
    { method: 'GET', path: '/models' },
    { method: 'GET', path: '/user/balance' },
  ],
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  // Its request id: `x-ds-trace-id` of recorded answers (2026-10).
  answerHeaders: ['x-ds-*'],
  refusals: 'undocumented',
  models: MODELS,
  makerNames: ['deepseek'],
};
