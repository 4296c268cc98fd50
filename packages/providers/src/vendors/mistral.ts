import { type AllowList, allow, harmless, type Rule } from '../bounds/allow-list.ts';
import type { ErrorShape } from '../dialect.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiErrors } from '../openai/errors.ts';
import { partOf } from '../openai/messages.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, K, type ModelRows, type Provider } from '../provider.ts';

/**
 * https://docs.mistral.ai/getting-started/models, read through the list of litellm 1.109.1 (2026-11). No maximum of
 * output is published apart from the window. A name without a date refers to changing models, so few rows have one.
 */
const MODELS: ModelRows = {
  'codestral-2508': [256 * K, 256 * K],
  'codestral-latest': [256 * K, 256 * K],
  'devstral-2512': [256 * K, 256 * K, 'thinks'],
  'devstral-latest': [256 * K, 256 * K, 'thinks'],
  'devstral-medium-latest': [256 * K, 256 * K, 'thinks'],
  'devstral-small-latest': [256 * K, 256 * K, 'thinks'],
  'magistral-medium-latest': [256 * K, 256 * K, 'thinks'],
  'magistral-small-latest': [256 * K, 256 * K, 'thinks'],
  'ministral-14b-2512': [256 * K, 256 * K],
  'ministral-14b-latest': [256 * K, 256 * K],
  'ministral-8b-2512': [256 * K, 256 * K],
  'ministral-8b-latest': [256 * K, 256 * K],
  'mistral-large-2512': [256 * K, 256 * K],
  'mistral-large-latest': [256 * K, 256 * K, 'thinks'],
  'mistral-medium-2604': [256 * K, 256 * K, 'thinks'],
  'mistral-medium-latest': [256 * K, 256 * K, 'thinks'],
  'mistral-medium-3-5': [256 * K, 256 * K, 'thinks'],
  'mistral-small-2603': [256 * K, 256 * K, 'thinks'],
  'mistral-small-latest': [256 * K, 256 * K, 'thinks'],
  'ministral-3b-2512': [128 * K, 128 * K],
  'ministral-3b-latest': [128 * K, 128 * K],
  'open-mistral-nemo': [128 * K, 128 * K],
  'pixtral-12b': [128 * K, 128 * K],
  'pixtral-large': [128 * K, 128 * K],
  'mistral-large-2411': [128 * K, 128 * K],
  'mistral-embed': [8 * K, undefined],
};

/** `@mistralai/mistralai`, chatcompletionrequest and requestedservicetier; errors are in its models/errors. */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: 'standard_only',
  asksUsage: false,
  lastWord: '[DONE]',
  errors: ['error object', 'message', 'detail'],
};

/** Both prompts are Mistral's own, and their length is not documented. */
const FIELDS: AllowList = allow(harmless('random_seed', 'metadata', 'prompt_cache_key'), {
  prompt_mode: 'whole window',
  safe_prompt: (on) => (on === false ? 'harmless' : 'whole window'),
});

/** The seed is `random_seed` (`@mistralai/mistralai`, chatcompletionrequest). */
const chat = openaiChat('mistral-chat', RULES, {
  outputBound: 'max_tokens',
  seed: 'random_seed',
  fields: FIELDS,
  parts: new Map<string, Rule>([
    ['thinking', 'whole window'],
    ['reference', partOf(harmless('reference_ids'))],
  ]),
});

/** An agent brings a model and tools that the call does not name, so its cost is not known. */
const agents = openaiChat('mistral-agents', undefined, { outputBound: 'max_tokens', seed: 'random_seed' });

/** Fill-in-the-middle (`@mistralai/mistralai`, fimcompletionrequest), which has no tiers. */
const fim = openaiCompletions(
  'mistral-fim',
  { ...RULES, standardTier: undefined },
  { fields: allow(FIELDS, harmless('min_tokens')), fillsIn: true },
);

/**
 * Its form has the fields at the top (`@ai-sdk/mistral` 3.0.69, mistralErrorDataSchema), next to OpenAI's form for OpenAI's
 * SDKs. Its own SDKs expect a list in the `detail` of a 422 (`@mistralai/mistralai`, models/errors/httpvalidationerror).
 */
const mistralErrors: ErrorShape = (error) => {
  const { code, message, type, param } = error;
  return { object: 'error', message, type, param, code, ...openaiErrors(error) };
};

const ROUTES: Provider['routes'] = [
  { path: '/v1/chat/completions', dialect: chat },
  { path: '/v1/fim/completions', dialect: fim },
  { path: '/v1/agents/completions', dialect: agents },
  // Their usage is not documented, so they have no bound.
  { path: '/v1/responses', dialect: openaiResponses('mistral-responses', undefined) },
  { path: '/v1/embeddings', dialect: openaiEmbeddings('mistral-embeddings', RULES) },
];

/** https://docs.mistral.ai/api; the `@mistralai/mistralai` SDK's lib/config.ts and funcs/. */
export const mistral: Provider = {
  id: 'mistral',
  traceName: 'mistral_ai',
  priceList: 'mistral',
  liteLlm: ['mistral', 'codestral'],
  baseUrl: 'https://api.mistral.ai',
  credential: BEARER,
  routes: ROUTES.map((route) => ({ ...route, dialect: { ...route.dialect, errors: mistralErrors } })),
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  errors: () => mistralErrors,
  // Headers of recorded answers (2026-11).
  answerHeaders: ['mistral-*', 'x-kong-*', 'ratelimitbysize-*', 'x-ratelimitbysize-*'],
  refusals: 'undocumented',
  models: MODELS,
  makerNames: ['mistralai'],
};
