import { judgeObject } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import * as FACTS from '../facts/vendors/perplexity.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider, rowsOf } from '../provider.ts';
import { type ReadStated, statedInParts } from '../stated-cost.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

const SEARCH_OPTIONS = compileGroup(FACTS.SEARCH_OPTIONS);

const CHAT_FIELDS = compileGroup(FACTS.CHAT_FIELDS, {
  searchOptions: judgeObject(SEARCH_OPTIONS),
});

const chat = openaiChat('perplexity-chat', RULES, { outputBound: 'max_tokens', fields: CHAT_FIELDS });

/** The number of searches of an agent has no bound. */
const agents = openaiResponses('perplexity-responses', undefined);

const embeddings = openaiEmbeddings('perplexity-embeddings', RULES);

const { models: REQUEST_FEES } = FACTS.REQUEST_FEES;

/** `usage.cost` and `usage.search_context_size` (`@perplexity-ai/perplexity_ai`, generated/api.ts). */
const stated: ReadStated = ({ cost, search_context_size: size }, model) => {
  const fees = Object.hasOwn(REQUEST_FEES, model) ? REQUEST_FEES[model] : undefined;
  const known = typeof size === 'string' && fees && Object.hasOwn(fees, size) ? fees[size] : undefined;
  const microusd = statedInParts(cost, 'total_cost', FACTS.COST_PARTS.names);
  return { microusd, requestMicrousd: known };
};

/**
 * https://docs.perplexity.ai/docs/sonar/openai-compatibility: `/v1/sonar` and `/v1/agent` are the canonical
 * names of `/chat/completions` and `/v1/responses`; the `@perplexity-ai/perplexity_ai` SDK's generated/api.ts.
 */
export const perplexity: Provider = {
  id: 'perplexity',
  priceList: 'perplexity',
  baseUrl: 'https://api.perplexity.ai',
  credential: BEARER,
  routes: [
    { path: '/chat/completions', dialect: chat },
    { path: '/v1/sonar', dialect: chat },
    { path: '/v1/responses', dialect: agents },
    { path: '/v1/agent', dialect: agents },
    { path: '/v1/embeddings', dialect: embeddings },
  ],
  outside: FACTS.OUTSIDE.names,
  free: FACTS.FREE.calls,
  rules: {
    stated,
    // Every model searches, and the pages that it reads count as input. Only embeddings do not search
    // (https://docs.perplexity.ai/docs/embeddings).
    addedInput: (model) => (FACTS.EMBEDDERS.matching.test(model) ? OPEN_WEIGHTS_ADDED : 'whole window'),
    // https://docs.perplexity.ai/getting-started/pricing: a call of Sonar has a fee, which depends on its search.
    feePerRequest: (model) => !FACTS.EMBEDDERS.matching.test(model),
    refusedModels: FACTS.REFUSED_MODELS.matching,
    freeUsage: new Set(FACTS.FREE_USAGE.names),
  },
  refusals: 'undocumented',
  models: rowsOf(FACTS.MODELS),
  makerNames: ['perplexity'],
  resells: true,
};
