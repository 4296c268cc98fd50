import {
  type FreeCalls,
  type Group,
  K,
  type Matching,
  type Models,
  type Names,
  type UsageForm,
} from '../fact.ts';

/** Context windows and maxima of output, in tokens. */
export const MODELS: Models = {
  source: 'https://console.groq.com/docs/models and …/docs/deprecations, and the list of litellm 1.109.1',
  date: '2026-11-24',
  models: {
    'llama-3.3-70b-versatile': { window: 128 * K, output: 32_768 },
    'llama-3.1-8b-instant': { window: 128 * K, output: 128 * K },
    'llama3-70b-8192': { window: 8_192, output: 8_192 },
    'llama3-8b-8192': { window: 8_192, output: 8_192 },
    'gemma2-9b-it': { window: 8_192, output: 8_192 },
    'mixtral-8x7b-32768': { window: 32_768, output: 32_768 },
    'mistral-saba-24b': { window: 32_768, output: 32_768 },
    'meta-llama/llama-4-scout-17b-16e-instruct': { window: 128 * K, output: 8_192 },
    'meta-llama/llama-4-maverick-17b-128e-instruct': { window: 128 * K, output: 8_192 },
    'moonshotai/kimi-k2-instruct': { window: 256 * K, output: 16_384 },
    'openai/gpt-oss-20b': { window: 128 * K, output: 65_536, thinks: true },
    'openai/gpt-oss-120b': { window: 128 * K, output: 65_536, thinks: true },
    'openai/gpt-oss-safeguard-20b': { window: 128 * K, output: 65_536, thinks: true },
    'qwen/qwen3-32b': { window: 128 * K, output: 40_960, thinks: true },
    'qwen/qwen3.8-27b': { window: 128 * K, output: 16_384, thinks: true },
    'deepseek-r1-distill-llama-70b': { window: 128 * K, output: 128 * K, thinks: true },
  },
};

/** Documents are in the body. The prompt that contains them is not documented. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: '`groq-sdk` 1.6, resources/chat/completions.d.ts',
  date: '2026-11-27',
  entries: {
    metadata: { effect: 'harmless' },
    store: { effect: 'harmless' },
    include_reasoning: { effect: 'harmless' },
    reasoning_format: { effect: 'harmless' },
    disable_tool_validation: { effect: 'harmless' },
    citation_options: { effect: 'harmless' },
    documents: { effect: 'whole window' },
  },
} as const satisfies Group;

/** How it states usage and errors. `service_tier` defaults to `on_demand`; all generated tokens are one total. Usage always comes, in a stream as `x_groq.usage`. In a whole answer `x_groq.usage` counts hardware caches. */
export const USAGE = {
  source: 'https://console.groq.com/docs/api-reference',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  ownField: 'x_groq',
  errors: ['error object'],
} as const satisfies UsageForm;

/** Seconds. */
export const FREE_USAGE: Names = {
  source: '`groq-sdk` 1.6, CompletionUsage',
  date: '2026-11-26',
  names: ['queue_time', 'prompt_time', 'completion_time', 'total_time'],
};

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://console.groq.com/docs/api-reference',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/openai/v1/models' },
    { method: 'GET', path: '/openai/v1/models/*' },
  ],
};

/** Headers of its answers that pass. */
export const ANSWER_HEADERS: Names = {
  source:
    'https://console.groq.com/docs/rate-limits has the shared ones; recorded answers have `x-groq-region`',
  date: '2026-11-26',
  names: ['x-groq-*'],
};

/** Fields of bodies, next to `model`, that choose a model. */
export const MODEL_FIELDS: Names = {
  source: 'https://console.groq.com/docs/compound',
  date: '2026-11-23',
  names: ['compound_custom'],
};

/** Paths whose ids have a slash, which OpenAI's SDKs encode. */
export const SLASHED_IDS: Names = {
  source: 'https://console.groq.com/docs/models: `openai/gpt-oss-120b`',
  date: '2026-11-26',
  names: ['/openai/v1/models/*'],
};

/** Compound systems, which use tools that have fees. */
export const REFUSED_MODELS: Matching = {
  source: 'https://console.groq.com/docs/compound',
  date: '2026-11-21',
  matching: /compound/,
};
