import { allow, harmless } from '../bounds/allow-list.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, K, type ModelRows, type Provider } from '../provider.ts';

/** https://inference-docs.cerebras.ai/models/openai-oss and …/gemma-4-31b: the windows of paid tiers. */
const MODELS: ModelRows = {
  'gpt-oss-120b': [128 * K, undefined, 'thinks'],
  'gemma-4-31b': [128 * K, undefined, 'thinks'],
};

/**
 * https://inference-docs.cerebras.ai/capabilities/service-tiers: an omitted tier is `default`.
 * https://inference-docs.cerebras.ai/support/error: an error has `message` at its top; in a stream it is in `error`
 * (`@cerebras/cerebras_cloud_sdk`, resources/chat/completions).
 */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['message', 'error object'],
};

/** The same SDK file: `max_completion_tokens` bounds visible and reasoning tokens. */
const chat = openaiChat('cerebras-chat', RULES, {
  fields: allow(harmless('clear_thinking', 'disable_reasoning', 'reasoning_format')),
});

/** https://inference-docs.cerebras.ai; the `@cerebras/cerebras_cloud_sdk` SDK's resources/. */
export const cerebras: Provider = {
  id: 'cerebras',
  priceList: 'cerebras',
  baseUrl: 'https://api.cerebras.ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: chat },
    { path: '/v1/completions', dialect: openaiCompletions('cerebras-completions', RULES) },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  refusals: 'undocumented',
  models: MODELS,
};
