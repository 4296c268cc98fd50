import type { FreeCalls, Group, Names, Refusals, UsageForm } from '../fact.ts';

/** Next to the fields of sampling and thinking. Plugins, other models and the choice of provider change the price. */
export const FIELDS = {
  at: '',
  of: 'fields',
  source: '`@openrouter/sdk` 1.3.19, models/chatrequest',
  date: '2026-11-27',
  entries: {
    metadata: { effect: 'harmless' },
    session_id: { effect: 'harmless' },
    trace: { effect: 'harmless' },
    top_a: { effect: 'harmless' },
    prompt_cache_key: { effect: 'harmless' },
    usage: { effect: 'harmless', source: 'https://openrouter.ai/docs/use-cases/usage-accounting' },
    reasoning_effort: { effect: 'judged', by: 'thinkingBudget' },
    models: { effect: 'refused', reason: 'other models have other prices' },
    provider: { effect: 'refused', reason: 'providers of a model have other prices' },
    plugins: { effect: 'refused', reason: 'plugins have fees' },
  },
} as const satisfies Group;

/** How it states usage and errors. Usage always comes. */
export const USAGE = {
  source: 'https://openrouter.ai/docs/api-reference, and `@openrouter/sdk`, chatstreamoptions',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  errors: ['error object'],
} as const satisfies UsageForm;

/** What OpenRouter bills for these counts. */
export const FREE_USAGE: Names = {
  source: '`@openrouter/sdk` 1.3, ChatUsage',
  date: '2026-11-26',
  names: ['cost', 'cost_details.*'],
};

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://openrouter.ai/docs/api-reference',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/api/v1/models' },
    { method: 'GET', path: '/api/v1/models/*' },
  ],
};

/** A response without completion tokens that is an error is not charged. */
export const REFUSALS: Refusals = {
  source:
    'https://openrouter.ai/docs/guides/features/zero-completion-insurance, and https://openrouter.ai/docs/api/reference/errors-and-debugging for which errors there are',
  date: '2026-11-22',
  errors: [
    { status: 402, billing: 'free' },
    { status: 403, billing: 'free' },
    { status: 408, billing: 'free' },
    { status: 502, billing: 'free' },
    { status: 503, billing: 'free' },
  ],
};
