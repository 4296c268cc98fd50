import { type FreeCalls, type Group, K, type Models, type UsageForm } from '../fact.ts';

/** The windows of paid tiers. */
export const MODELS: Models = {
  source: 'https://inference-docs.cerebras.ai/models/openai-oss and …/gemma-4-31b',
  date: '2026-11-22',
  models: {
    'gpt-oss-120b': { window: 128 * K, thinks: true },
    'gemma-4-31b': { window: 128 * K, thinks: true },
  },
};

/** `max_completion_tokens` bounds both visible and reasoning tokens. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: '`@cerebras/cerebras_cloud_sdk` 1.91, resources/chat/completions.d.ts',
  date: '2026-11-27',
  entries: {
    clear_thinking: { effect: 'harmless' },
    disable_reasoning: { effect: 'harmless' },
    reasoning_format: { effect: 'harmless' },
  },
} as const satisfies Group;

/**
 * How it states usage and errors. An omitted tier is `default`. An error has `message` at the top level. In a stream `message` is in
 * `error`.
 */
export const USAGE = {
  source:
    'https://inference-docs.cerebras.ai/capabilities/service-tiers, https://inference-docs.cerebras.ai/support/error, and `@cerebras/cerebras_cloud_sdk`, resources/chat/completions',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['message', 'error object'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://inference-docs.cerebras.ai',
  date: '2026-11-22',
  calls: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
};
