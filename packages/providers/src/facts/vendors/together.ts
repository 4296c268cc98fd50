import { type FreeCalls, type Group, K, type Models, type Names, type UsageForm } from '../fact.ts';

/** No maximum of output is published. */
export const MODELS: Models = {
  source: 'https://docs.together.ai/docs/serverless-models',
  date: '2026-11-22',
  models: {
    'meta-llama/Llama-3.3-70B-Instruct-Turbo': { window: 128 * K },
    'meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo': { window: 128 * K },
    'meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo': { window: 128 * K },
    'meta-llama/Meta-Llama-3.1-405B-Instruct-Turbo': { window: 128 * K },
  },
};

/** Arguments of the template can make its text longer. A moderation model is billed, too. */
export const CHAT_FIELDS = {
  at: '',
  of: 'fields',
  source: '`together-ai` 0.52, resources/chat/completions.d.ts',
  date: '2026-11-27',
  entries: {
    context_length_exceeded_behavior: { effect: 'harmless' },
    chat_template_kwargs: { effect: 'whole window' },
    echo: { effect: 'harmless', values: [false], reason: 'the echo may count as output' },
    safety_model: { effect: 'refused', reason: 'a second model is billed' },
  },
} as const satisfies Group;

/** Frames: at most the whole window. */
export const PARTS = {
  at: 'messages[].content[]',
  of: 'kinds',
  source: '`together-ai` 0.52, resources/chat/completions.d.ts',
  date: '2026-11-27',
  entries: {
    video_url: { effect: 'whole window' },
  },
} as const satisfies Group;

/** How it states usage and errors. The last chunk has the usage, even if the call did not request it. */
export const USAGE = {
  source: 'https://docs.together.ai/reference',
  date: '2026-11-22',
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  errors: ['error object'],
} as const satisfies UsageForm;

/** Calls that are free. All others are billed. */
export const FREE: FreeCalls = {
  source: 'https://docs.together.ai/reference',
  date: '2026-11-21',
  calls: [{ method: 'GET', path: '/v1/models' }],
};

/** Headers of its answers that pass. */
export const ANSWER_HEADERS: Names = {
  source:
    'https://docs.together.ai/docs/rate-limits; `together-ai` reads `x-together-file-id` when it uploads a file',
  date: '2026-11-26',
  names: ['x-tokenlimit-*', 'x-together-*'],
};
