import { anthropicMessages, claudeWrites } from '../anthropic/messages.ts';
import { type AllowList, allow } from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { cohereRerank } from '../cohere/embed.ts';
import * as FACTS from '../facts/vendors/openrouter.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { SAMPLING, thinkingBudget, thinkingFields } from '../openai/fields.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider } from '../provider.ts';
import { type ReadStated, statedInParts, statedMicrousd } from '../stated-cost.ts';
import type { VendorRules } from '../vendor-rules.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

const FIELDS: AllowList = allow(
  SAMPLING,
  thinkingFields,
  compileGroup(FACTS.FIELDS, { thinkingBudget: apart(thinkingBudget) }),
);

/**
 * `usage.cost` is what OpenRouter takes from the account. A call with the customer's own key (`is_byok`) also costs what the host bills to
 * that key. If the answer does not state this part, the cost is not known. Older answers do not contain `is_byok`. They state this part
 * only for calls with such a key, and there it is the larger one. https://openrouter.ai/docs/use-cases/usage-accounting (2026-11)
 */
const stated: ReadStated = ({ cost, cost_details, is_byok }) => {
  const own = statedMicrousd(cost);
  const hosts = (parts: readonly string[]) => statedInParts(cost_details, 'upstream_inference_cost', parts);
  const isByok = typeof is_byok === 'boolean' ? is_byok : (hosts([]) ?? 0) > (own ?? 0);
  return { microusd: isByok ? (own ?? 0) + (hosts(FACTS.PARTS_OF_HOSTS.names) ?? Number.NaN) : own };
};

/**
 * OpenRouter sends a call only to hosts that take at most this price, and refuses it if there is none: dollars for a million tokens, or
 * for a request, as texts (`@openrouter/sdk` 1.3.19, providerpreferences; https://openrouter.ai/docs/guides/routing/provider-selection,
 * 2026-11). All its endpoints have the field.
 */
const withHighestPrice: VendorRules['withHighestPrice'] = (body, { input, output, requests = 0 }) => ({
  ...body,
  provider: { max_price: { prompt: usd(input), completion: usd(output), request: usd(requests) } },
});

const usd = (microusd: number | undefined): string | undefined =>
  microusd === undefined ? undefined : String(microusd / 1_000_000);

/** https://openrouter.ai/docs/api-reference; the `@openrouter/sdk` SDK's lib/config.ts, funcs/ and chatrequest. */
export const openrouter: Provider = {
  id: 'openrouter',
  priceList: 'openrouter',
  baseUrl: 'https://openrouter.ai',
  credential: BEARER,
  routes: [
    { path: '/api/v1/chat/completions', dialect: openaiChat('openrouter-chat', RULES, { fields: FIELDS }) },
    {
      path: '/api/v1/completions',
      dialect: openaiCompletions('openrouter-completions', RULES, { fields: FIELDS }),
    },
    { path: '/api/v1/responses', dialect: openaiResponses('openrouter-responses', RULES) },
    { path: '/api/v1/messages', dialect: anthropicMessages },
    { path: '/api/v1/embeddings', dialect: openaiEmbeddings('openrouter-embeddings', RULES) },
    { path: '/api/v1/rerank', dialect: cohereRerank },
  ],
  outside: FACTS.OUTSIDE.names,
  free: FACTS.FREE.calls,
  slashedIds: FACTS.SLASHED_IDS.names,
  rules: {
    stated,
    withHighestPrice,
    addedInput: FACTS.ADDED.most,
    // It forwards calls to providers that differ, so the bound is not assumed to cover reasoning.
    coversReasoning: () => false,
    refusedModels: FACTS.REFUSED_MODELS.matching,
    freeUsage: new Set(FACTS.FREE_USAGE.names),
  },
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: FACTS.REFUSALS.errors,
  modelFields: FACTS.MODEL_FIELDS.names,
  cacheWrites: (model) => {
    const { matching, times } = FACTS.CACHE_WRITES;
    return claudeWrites(model) ?? (matching.test(model.toLowerCase()) ? times : undefined);
  },
  resells: true,
};
