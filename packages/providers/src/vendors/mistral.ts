import { allow } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import type { ErrorShape } from '../dialect.ts';
import * as FACTS from '../facts/vendors/mistral.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiErrors } from '../openai/errors.ts';
import { partOf } from '../openai/messages.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider, rowsOf } from '../provider.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

const FIELDS = compileGroup(FACTS.FIELDS, {
  safePrompt: (on) => (on === false ? 'harmless' : 'whole window'),
});

/** The seed is `random_seed` (`@mistralai/mistralai`, chatcompletionrequest). */
const chat = openaiChat('mistral-chat', RULES, {
  outputBound: 'max_tokens',
  seed: 'random_seed',
  fields: FIELDS,
  parts: compileGroup(FACTS.PARTS, { reference: partOf(compileGroup(FACTS.REFERENCE)) }),
});

/** An agent has a model and tools that the call does not name, so its cost is not known. */
const agents = openaiChat('mistral-agents', undefined, { outputBound: 'max_tokens', seed: 'random_seed' });

/** Fill-in-the-middle (`@mistralai/mistralai`, fimcompletionrequest), which has no tiers. */
const fim = openaiCompletions(
  'mistral-fim',
  { ...RULES, standardTier: undefined },
  { fields: allow(FIELDS, compileGroup(FACTS.FIM_FIELDS)), fillsIn: true },
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
  free: FACTS.FREE.calls,
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  errors: () => mistralErrors,
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
  models: rowsOf(FACTS.MODELS),
  makerNames: ['mistralai'],
};
