import type { FreeCalls, Group, Matching, Most, Names, Refusals, UsageForm, Writes } from '../fact.ts';

/** Fields beyond those of sampling and thinking. Plugins, other models and the choice of provider change the price. */
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

/** Headers of its answers that pass: the id with which the cost of a generation can be read. */
export const ANSWER_HEADERS: Names = {
  source: 'https://openrouter.ai/docs/api-reference/overview',
  date: '2026-11-26',
  names: ['x-generation-id', 'x-openrouter-*'],
};

/** Fields of bodies, next to `model`, that choose a model. */
export const MODEL_FIELDS: Names = {
  source: 'https://openrouter.ai/docs/api-reference/overview',
  date: '2026-11-23',
  names: ['models', 'preset', 'plugins'],
};

/** Paths whose ids have a slash, which OpenAI's SDKs encode. */
export const SLASHED_IDS: Names = {
  source: 'https://openrouter.ai/docs: `openai/gpt-4o`',
  date: '2026-11-26',
  names: ['/api/v1/models/*'],
};

/** Models that search by themselves; variants that search (`:online`) or choose dearer providers (`:nitro`, `:exacto`); routers, which have no one price; and models that write images or sound, whose rates differ from those of text and are not in the price list. */
export const REFUSED_MODELS: Matching = {
  source:
    'https://openrouter.ai/docs/features/multimodal/image-generation, and https://openrouter.ai/docs/guides/routing/model-variants',
  date: '2026-11-21',
  matching:
    /image|audio|lyria|:(online|nitro|exacto)|^~?openrouter\/|\/router$|^perplexity\/|sonar|search-(preview|api)|deep-research|multi-agent/,
};

/** Tokens of the templates of its hosts, and tokens that OpenRouter adds. */
export const ADDED: Most = {
  source: 'https://openrouter.ai/docs/api-reference',
  date: '2026-11-22',
  most: 4_096,
};

/**
 * Alibaba's Qwen takes 1.25 times the input. Only Claude has writes that last an hour. The list states the rates of Gemini. For all other
 * models a write costs no more than the input.
 */
export const CACHE_WRITES: Writes = {
  source: 'https://openrouter.ai/docs/guides/best-practices/prompt-caching',
  date: '2026-11-26',
  matching: /qwen/,
  times: { short: 1.25, hour: 1.25 },
};

/** Parts of `usage.cost_details` that a host bills to a key of its own. */
export const PARTS_OF_HOSTS: Names = {
  source: 'https://openrouter.ai/docs/use-cases/usage-accounting',
  date: '2026-11-27',
  names: ['upstream_inference_prompt_cost', 'upstream_inference_completions_cost'],
};

/** Endpoints that open sessions elsewhere, or hand out keys. */
export const OUTSIDE: Names = {
  source: 'https://openrouter.ai/docs/api-reference/api-keys/create-api-key',
  date: '2026-11-29',
  names: ['/api/v1/keys', '/api/v1/auth/keys', '/api/v1/auth/keys/code'],
};
