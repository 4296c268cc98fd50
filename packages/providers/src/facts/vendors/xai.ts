import {
  type Cited,
  type FreeCalls,
  type Group,
  K,
  type Matching,
  type Models,
  type Most,
  type Names,
  type Refusals,
  type UsageForm,
} from '../fact.ts';

/** No maximum of output is published apart from the window. */
export const MODELS: Models = {
  source: 'https://docs.x.ai/docs/models, read through the list of litellm 1.109.1 and genai-prices 0.1.8',
  date: '2026-11-24',
  models: {
    'grok-2': { window: 128 * K, output: 128 * K },
    'grok-3': { window: 128 * K, output: 128 * K },
    'grok-3-fast': { window: 128 * K, output: 128 * K },
    'grok-3-mini': { window: 128 * K, output: 128 * K, thinks: true },
    'grok-3-mini-fast': { window: 128 * K, output: 128 * K, thinks: true },
    'grok-4': { window: 256 * K, output: 256 * K, thinks: true },
    'grok-4-fast-reasoning': { window: 2_000_000, output: 2_000_000, thinks: true },
    'grok-4-fast-non-reasoning': { window: 2_000_000, output: 2_000_000 },
    'grok-4-1-fast-reasoning': { window: 2_000_000, output: 2_000_000, thinks: true },
    'grok-4-1-fast-non-reasoning': { window: 2_000_000, output: 2_000_000 },
    'grok-4.20': { window: K * K, output: K * K, thinks: true },
    'grok-4.20-reasoning': { window: K * K, output: K * K, thinks: true },
    'grok-4.20-non-reasoning': { window: K * K, output: K * K },
    'grok-4.3': { window: K * K, output: K * K, thinks: true },
    'grok-4.5': { window: 500_000, output: 500_000, thinks: true },
    'grok-4.6': { window: 500_000, output: 500_000, thinks: true },
    'grok-4.7': { window: 500_000, output: 500_000, thinks: true },
    'grok-code-fast-1': { window: 256 * K, output: 256 * K, thinks: true },
    'grok-build-0.1': { window: 256 * K, output: 256 * K, thinks: true },
  },
};

/** A deferred answer is read by another call. Live search has a fee for each source. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: 'https://docs.x.ai/docs/api-reference; `xai-sdk` 1.21, chat.py',
  date: '2026-11-22',
  entries: {
    metadata: { effect: 'harmless' },
    store: { effect: 'harmless' },
    safety_identifier: { effect: 'harmless' },
    prompt_cache_key: { effect: 'harmless' },
    deferred: { effect: 'harmless', values: [false], reason: 'the answer would not carry the usage' },
    search_parameters: { effect: 'refused', reason: 'searches have a fee, and their number has no bound' },
  },
} as const satisfies Group;

/** A price for each image must be the highest price of all its resolutions and qualities. */
export const IMAGE_FIELDS = {
  at: '',
  of: 'fields',
  source: '`xai-sdk` 1.21, image.py; https://docs.x.ai/docs/guides/image-generation: 1 to 10 images',
  date: '2026-11-27',
  entries: {
    aspect_ratio: { effect: 'harmless' },
    resolution: { effect: 'harmless' },
  },
} as const satisfies Group;

/** How it states usage and errors. Reasoning is counted separately from the completion. */
export const USAGE = {
  source: 'https://docs.x.ai/docs/api-reference',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  reasoningApart: true,
  errors: ['error object', 'error text'],
} as const satisfies UsageForm;

/** The amount that xAI bills for the counts, in parts of a dollar. The amount itself is not a count. */
export const FREE_USAGE: Names = {
  source: 'https://docs.x.ai/docs/api-reference',
  date: '2026-11-26',
  names: ['cost_in_usd_ticks'],
};

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://docs.x.ai/developers/model-capabilities/text/comparison',
  date: '2026-11-21',
  calls: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
    { method: 'GET', path: '/v1/responses/*' },
    { method: 'DELETE', path: '/v1/responses/*' },
  ],
};

/**
 * If xAI finds a violation before generation, it charges $0.05 for the request. If it finds one later, it charges the generation. Such a
 * 403 has the code of missing permissions and the text `Content violates usage guidelines. Team: …, Failed check: …` in `error`.
 */
export const REFUSALS: Refusals = {
  source: 'https://docs.x.ai/docs/pricing#usage-guidelines-violation-fee',
  date: '2026-11-22',
  errors: [
    {
      status: 403,
      messageStart: 'Content violates usage guidelines',
      billing: 'billed',
      feeMicrousd: 50_000,
    },
  ],
};

/** Headers of its answers that pass. */
export const ANSWER_HEADERS: Names = {
  source: 'https://docs.x.ai/developers/faq/security, and recorded answers',
  date: '2026-11-26',
  names: ['x-zero-data-retention', 'x-data-retention', 'x-metrics-*', 'x-grok-*'],
};

/** Models that run several agents, whose number has no bound. */
export const REFUSED_MODELS: Matching = {
  source: 'https://docs.x.ai/docs/models',
  date: '2026-11-21',
  matching: /multi-agent/,
};

/** Models that do not reason. xAI does not document that the output bound of other models covers reasoning. */
export const PLAIN_MODELS: Matching = {
  source: 'https://docs.x.ai/docs/models',
  date: '2026-11-22',
  matching: /non-reasoning|^grok-2/,
};

/** Tokens of the prompts that xAI adds, which are several hundred tokens long. */
export const ADDED: Most = {
  source: 'https://docs.x.ai/docs/models',
  date: '2026-11-22',
  most: 4_096,
};

/** One dollar in the unit of `cost_in_usd_ticks`. That field is the whole cost of a call, including its tools. */
export const USD: Cited & { readonly ticks: number } = {
  source: 'https://docs.x.ai/developers/cost-tracking',
  date: '2026-11-26',
  ticks: 10_000_000_000,
};

/** Endpoints that open sessions elsewhere, or hand out keys. */
export const OUTSIDE: Names = {
  source: 'https://docs.x.ai/docs/guides/voice/agent',
  date: '2026-11-29',
  names: ['/v1/realtime/client_secrets'],
};
