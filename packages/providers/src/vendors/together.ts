import { type AllowList, allow } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import { cohereRerank } from '../cohere/embed.ts';
import * as FACTS from '../facts/vendors/together.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { SAMPLING, thinkingFields } from '../openai/fields.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider, rowsOf } from '../provider.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

const CHAT_FIELDS: AllowList = allow(SAMPLING, thinkingFields, compileGroup(FACTS.CHAT_FIELDS));

const chat = openaiChat('together-chat', RULES, {
  outputBound: 'max_tokens',
  fields: CHAT_FIELDS,
  parts: compileGroup(FACTS.PARTS),
});

/** https://docs.together.ai/reference; the `together-ai` SDK's client.ts and resources/ (`max_tokens` only). */
export const together: Provider = {
  id: 'together',
  priceList: 'together',
  liteLlm: ['together_ai'],
  baseUrl: 'https://api.together.ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: chat },
    {
      path: '/v1/completions',
      dialect: openaiCompletions('together-completions', RULES, { fields: SAMPLING }),
    },
    { path: '/v1/embeddings', dialect: openaiEmbeddings('together-embeddings', RULES) },
    { path: '/v1/rerank', dialect: cohereRerank },
  ],
  free: FACTS.FREE.calls,
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
  models: rowsOf(FACTS.MODELS),
};
