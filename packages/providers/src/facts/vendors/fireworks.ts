import type { FreeCalls, Group, Names, UsageForm } from '../fact.ts';

/** Fields beyond those of sampling and thinking. */
export const FIELDS = {
  at: '',
  of: 'fields',
  source: '`fireworks-ai` 1.2.30, types/chat/completion_create_params.py',
  date: '2026-11-27',
  entries: {
    context_length_exceeded_behavior: { effect: 'harmless' },
    metadata: { effect: 'harmless' },
    perf_metrics_in_response: { effect: 'harmless' },
    prompt_cache_isolation_key: { effect: 'harmless' },
    prompt_cache_key: { effect: 'harmless' },
    prompt_truncate_len: { effect: 'harmless' },
    raw_output: { effect: 'harmless' },
    reasoning_history: { effect: 'harmless' },
    return_token_ids: { effect: 'harmless' },
    reasoning_effort: { effect: 'judged', by: 'thinkingBudget' },
    safe_tokenization: { effect: 'harmless' },
    echo: { effect: 'harmless', values: [false], reason: 'the echo may count as output' },
    echo_last: { effect: 'harmless', values: [0], reason: 'the echo may count as output' },
    speculation: { effect: 'refused', reason: 'the billing of rejected predictions is not documented' },
  },
} as const satisfies Group;

/**
 * How it states usage and errors. Only the tier `priority` differs from the standard one. The last chunk has the usage, even if the call
 * did not request it.
 */
export const USAGE = {
  source: '`fireworks-ai`, chat/completion_create_params',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  errors: ['error object'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://docs.fireworks.ai/guides/querying-text-models',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/inference/v1/models' },
    { method: 'GET', path: '/inference/v1/models/*' },
  ],
};

/** Headers of its answers that pass. */
export const ANSWER_HEADERS: Names = {
  source: 'https://docs.fireworks.ai/api-reference/post-chatcompletions, `perf_metrics_in_response`',
  date: '2026-11-26',
  names: ['fireworks-*'],
};

/** Paths whose ids have a slash, which OpenAI's SDKs encode. */
export const SLASHED_IDS: Names = {
  source: 'https://docs.fireworks.ai: `accounts/fireworks/models/…`',
  date: '2026-11-26',
  names: ['/inference/v1/models/*'],
};

/** Endpoints that open sessions elsewhere, or hand out keys. */
export const OUTSIDE: Names = {
  source: 'https://docs.fireworks.ai/api-reference/create-api-key',
  date: '2026-11-29',
  names: ['/v1/accounts/*/users/*/apiKeys'],
};
