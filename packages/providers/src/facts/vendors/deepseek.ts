import { type FreeCalls, type Group, K, type Models, type Names, type UsageForm } from '../fact.ts';

/** The names without a version have referred to several models, so their rows are those of the largest. */
export const MODELS: Models = {
  source: 'https://api-docs.deepseek.com/quick_start/pricing, read through the list of litellm 1.109.1',
  date: '2026-11-24',
  models: {
    'deepseek-chat': { window: K * K, output: 384 * K, thinks: true },
    'deepseek-reasoner': { window: K * K, output: 384 * K, thinks: true },
    'deepseek-v4-flash': { window: K * K, output: 384 * K, thinks: true },
    'deepseek-v4-pro': { window: K * K, output: 384 * K, thinks: true },
  },
};

/** Fields beyond those of thinking. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: 'https://api-docs.deepseek.com/guides/thinking_mode',
  date: '2026-11-22',
  entries: {
    user_id: { effect: 'harmless' },
  },
} as const satisfies Group;

/** How it states usage and errors. `max_tokens` includes the chain of thought. */
export const USAGE = {
  source: 'https://api-docs.deepseek.com/api/create-chat-completion',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://api-docs.deepseek.com',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/models' },
    { method: 'GET', path: '/user/balance' },
  ],
};

/** Headers of its answers that pass: its request id. */
export const ANSWER_HEADERS: Names = {
  source: '`x-ds-trace-id` of recorded answers',
  date: '2026-11-26',
  names: ['x-ds-*'],
};
