import { type FreeCalls, K, type Models, type Names, type UsageForm } from '../fact.ts';

/** Context windows and maxima of output, in tokens. */
export const MODELS: Models = {
  source: 'https://docs.cohere.com/docs/models, and the list of litellm 1.109.1',
  date: '2026-11-24',
  models: {
    command: { window: 4_096, output: 4_096 },
    'command-light': { window: 4_096, output: 4_096 },
    'command-r': { window: 128 * K, output: 4_096 },
    'command-r-plus': { window: 128 * K, output: 4_096 },
    'command-r7b': { window: 128 * K, output: 4_096 },
    'command-a': { window: 256 * K, output: 8_192 },
    'command-a-vision': { window: 128 * K, output: 8_192 },
    'command-a-reasoning': { window: 256 * K, output: 32_768, thinks: true },
    'command-a-plus': { window: 128 * K, output: 65_536, thinks: true },
    'c4ai-aya-expanse-8b': { window: 8 * K, output: 4_096 },
    'c4ai-aya-expanse-32b': { window: 128 * K, output: 4_096 },
    'embed-v4.0': { window: 128 * K },
  },
};

/** How it states usage and errors.  */
export const OPENAI_USAGE = {
  source: 'https://docs.cohere.com/docs/compatibility-api',
  date: '2026-11-22',
  standardTier: 'default',
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://docs.cohere.com/reference',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
};

/** Headers of its answers that pass. */
export const ANSWER_HEADERS: Names = {
  source: 'recorded answers, and https://docs.cohere.com/docs/rate-limits',
  date: '2026-11-26',
  names: [
    'x-api-warning',
    'x-endpoint-*',
    'x-trial-*',
    'x-debug-trace-id',
    'x-cohere-*',
    'x-kong-*',
    'num_chars',
    'num_tokens',
  ],
};
