import type { FreeCalls, Group, Names, UsageForm } from '../fact.ts';

export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: 'https://docs.tokenfactory.nebius.com/api-reference/inference/create-chat-completion',
  date: '2026-11-26',
  entries: {
    store: { effect: 'harmless' },
    top_k: { effect: 'harmless' },
  },
} as const satisfies Group;

/** How it states usage and errors. `service_tier` is `auto` if it is omitted; `stream_options.include_usage` brings the usage with the last chunk. Its OpenAPI document is FastAPI’s, whose errors are in `detail`. */
export const USAGE = {
  source: 'https://docs.tokenfactory.nebius.com/api-reference/inference/create-chat-completion',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object', 'detail'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://docs.tokenfactory.nebius.com/api-reference',
  date: '2026-11-22',
  calls: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
};

/** Paths whose ids have a slash, which OpenAI's SDKs encode. */
export const SLASHED_IDS: Names = {
  source: 'https://docs.studio.nebius.com: `meta-llama/…`',
  date: '2026-11-26',
  names: ['/v1/models/*'],
};
