import { type FreeCalls, type Group, K, type Models, type Names, type UsageForm } from '../fact.ts';

/**
 * No maximum of output is published apart from the window. A name without a date refers to different models over time, so few rows have
 * such a name.
 */
export const MODELS: Models = {
  source: 'https://docs.mistral.ai/getting-started/models, read through the list of litellm 1.109.1',
  date: '2026-11-24',
  models: {
    'codestral-2508': { window: 256 * K, output: 256 * K },
    'codestral-latest': { window: 256 * K, output: 256 * K },
    'devstral-2512': { window: 256 * K, output: 256 * K, thinks: true },
    'devstral-latest': { window: 256 * K, output: 256 * K, thinks: true },
    'devstral-medium-latest': { window: 256 * K, output: 256 * K, thinks: true },
    'devstral-small-latest': { window: 256 * K, output: 256 * K, thinks: true },
    'magistral-medium-latest': { window: 256 * K, output: 256 * K, thinks: true },
    'magistral-small-latest': { window: 256 * K, output: 256 * K, thinks: true },
    'ministral-14b-2512': { window: 256 * K, output: 256 * K },
    'ministral-14b-latest': { window: 256 * K, output: 256 * K },
    'ministral-8b-2512': { window: 256 * K, output: 256 * K },
    'ministral-8b-latest': { window: 256 * K, output: 256 * K },
    'mistral-large-2512': { window: 256 * K, output: 256 * K },
    'mistral-large-latest': { window: 256 * K, output: 256 * K, thinks: true },
    'mistral-medium-2604': { window: 256 * K, output: 256 * K, thinks: true },
    'mistral-medium-latest': { window: 256 * K, output: 256 * K, thinks: true },
    'mistral-medium-3-5': { window: 256 * K, output: 256 * K, thinks: true },
    'mistral-small-2603': { window: 256 * K, output: 256 * K, thinks: true },
    'mistral-small-latest': { window: 256 * K, output: 256 * K, thinks: true },
    'ministral-3b-2512': { window: 128 * K, output: 128 * K },
    'ministral-3b-latest': { window: 128 * K, output: 128 * K },
    'open-mistral-nemo': { window: 128 * K, output: 128 * K },
    'pixtral-12b': { window: 128 * K, output: 128 * K },
    'pixtral-large': { window: 128 * K, output: 128 * K },
    'mistral-large-2411': { window: 128 * K, output: 128 * K },
    'mistral-embed': { window: 8 * K },
  },
};

/** Mistral adds both prompts and does not document their length. */
export const FIELDS = {
  at: '',
  of: 'fields',
  source: '`@mistralai/mistralai` 2.7, chatcompletionrequest',
  date: '2026-11-27',
  entries: {
    random_seed: { effect: 'harmless' },
    metadata: { effect: 'harmless' },
    prompt_cache_key: { effect: 'harmless' },
    prompt_mode: { effect: 'whole window' },
    safe_prompt: { effect: 'judged', by: 'safePrompt' },
  },
} as const satisfies Group;

export const FIM_FIELDS = {
  at: '',
  of: 'fields',
  source: '`@mistralai/mistralai` 2.7, fimcompletionrequest',
  date: '2026-11-27',
  entries: {
    min_tokens: { effect: 'harmless' },
  },
} as const satisfies Group;

export const PARTS = {
  at: 'messages[].content[]',
  of: 'kinds',
  source: '`@mistralai/mistralai` 2.7, contentchunk',
  date: '2026-11-27',
  entries: {
    thinking: { effect: 'whole window' },
    reference: { effect: 'judged', by: 'reference' },
  },
} as const satisfies Group;

export const REFERENCE = {
  at: 'messages[].content[]',
  of: 'fields',
  source: '`@mistralai/mistralai` 2.7, referencechunk',
  date: '2026-11-27',
  entries: {
    type: { effect: 'harmless' },
    reference_ids: { effect: 'harmless' },
  },
} as const satisfies Group;

/** How it states usage and errors.  */
export const USAGE = {
  source:
    '`@mistralai/mistralai`, chatcompletionrequest and requestedservicetier; errors are in its models/errors',
  date: '2026-11-22',
  standardTier: 'standard_only',
  asksUsage: false,
  lastWord: '[DONE]',
  errors: ['error object', 'message', 'detail'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://docs.mistral.ai/api',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
};

/** Headers of its answers that pass. */
export const ANSWER_HEADERS: Names = {
  source: 'recorded answers',
  date: '2026-11-26',
  names: ['mistral-*', 'x-kong-*', 'ratelimitbysize-*', 'x-ratelimitbysize-*'],
};
