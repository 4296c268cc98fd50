import { compileGroup } from '../bounds/compile-group.ts';
import * as FACTS from '../facts/vendors/xai.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiImages } from '../openai/images.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider, rowsOf } from '../provider.ts';
import { statedMicrousd } from '../stated-cost.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

/**
 * https://docs.x.ai/developers/model-capabilities/text/comparison (paths);
 * `@ai-sdk/xai` sends `max_completion_tokens` to chat completions.
 */
export const xai: Provider = {
  id: 'xai',
  baseUrl: 'https://api.x.ai',
  traceName: 'x_ai',
  priceList: 'x-ai',
  liteLlm: ['xai'],
  credential: BEARER,
  routes: [
    {
      path: '/v1/chat/completions',
      dialect: openaiChat('xai-chat', RULES, { fields: compileGroup(FACTS.CHAT_FIELDS) }),
    },
    { path: '/v1/responses', dialect: openaiResponses('xai-responses', RULES) },
    {
      path: '/v1/images/generations',
      dialect: openaiImages('xai-images', RULES, compileGroup(FACTS.IMAGE_FIELDS)),
    },
  ],
  outside: FACTS.OUTSIDE.names,
  free: FACTS.FREE.calls,
  rules: {
    stated: ({ cost_in_usd_ticks: ticks }) => ({ microusd: statedMicrousd(ticks, FACTS.USD.ticks) }),
    addedInput: FACTS.ADDED.most,
    coversReasoning: (model) => FACTS.PLAIN_MODELS.matching.test(model),
    refusedModels: FACTS.REFUSED_MODELS.matching,
    freeUsage: new Set(FACTS.FREE_USAGE.names),
  },
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: FACTS.REFUSALS.errors,
  models: rowsOf(FACTS.MODELS),
  makerNames: ['x-ai', 'xai'],
};
