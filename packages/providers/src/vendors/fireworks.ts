import { anthropicMessages } from '../anthropic/messages.ts';
import { type AllowList, allow } from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { cohereRerank } from '../cohere/embed.ts';
import * as FACTS from '../facts/vendors/fireworks.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { SAMPLING, thinkingBudget, thinkingFields } from '../openai/fields.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider } from '../provider.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

const FIELDS: AllowList = allow(
  SAMPLING,
  thinkingFields,
  compileGroup(FACTS.FIELDS, { thinkingBudget: apart(thinkingBudget) }),
);

const chat = openaiChat('fireworks-chat', RULES, { outputBound: 'max_tokens', fields: FIELDS });

/**
 * https://docs.fireworks.ai/guides/querying-text-models; the `fireworks-ai` Python SDK, whose chat completions
 * take `max_tokens` and refuse its alias `max_completion_tokens` in the same call.
 */
export const fireworks: Provider = {
  id: 'fireworks',
  priceList: 'fireworks',
  liteLlm: ['fireworks_ai', 'fireworks_ai-embedding-models'],
  baseUrl: 'https://api.fireworks.ai',
  credential: BEARER,
  routes: [
    { path: '/inference/v1/chat/completions', dialect: chat },
    {
      path: '/inference/v1/completions',
      dialect: openaiCompletions('fireworks-completions', RULES, { fields: FIELDS }),
    },
    { path: '/inference/v1/responses', dialect: openaiResponses('fireworks-responses', RULES) },
    { path: '/inference/v1/messages', dialect: anthropicMessages },
    { path: '/inference/v1/embeddings', dialect: openaiEmbeddings('fireworks-embeddings', RULES) },
    { path: '/inference/v1/rerank', dialect: cohereRerank },
  ],
  outside: FACTS.OUTSIDE.names,
  free: FACTS.FREE.calls,
  slashedIds: FACTS.SLASHED_IDS.names,
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
};
