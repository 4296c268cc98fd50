import { compileGroup } from '../bounds/compile-group.ts';
import * as FACTS from '../facts/vendors/groq.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { openaiSpeech } from '../openai/speech.ts';
import { BEARER, type Provider, rowsOf } from '../provider.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

/** https://console.groq.com/docs/api-reference; the `groq-sdk` SDK's client.ts and resources/. */
export const groq: Provider = {
  id: 'groq',
  priceList: 'groq',
  baseUrl: 'https://api.groq.com',
  credential: BEARER,
  routes: [
    {
      path: '/openai/v1/chat/completions',
      dialect: openaiChat('groq-chat', RULES, { fields: compileGroup(FACTS.CHAT_FIELDS) }),
    },
    { path: '/openai/v1/responses', dialect: openaiResponses('groq-responses', RULES) },
    { path: '/openai/v1/embeddings', dialect: openaiEmbeddings('groq-embeddings', RULES) },
    { path: '/openai/v1/audio/speech', dialect: openaiSpeech('groq-speech', RULES) },
  ],
  free: FACTS.FREE.calls,
  slashedIds: FACTS.SLASHED_IDS.names,
  rules: {
    addedInput: OPEN_WEIGHTS_ADDED,
    refusedModels: FACTS.REFUSED_MODELS.matching,
    freeUsage: new Set(FACTS.FREE_USAGE.names),
  },
  modelFields: FACTS.MODEL_FIELDS.names,
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
  models: rowsOf(FACTS.MODELS),
};
