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
  // `openai/gpt-oss-120b` (https://console.groq.com/docs/models): OpenAI's SDKs encode the slash.
  slashedIds: ['/openai/v1/models/*'],
  // Compound systems use tools that have fees.
  rules: {
    addedInput: OPEN_WEIGHTS_ADDED,
    refusedModels: /compound/,
    freeUsage: new Set(FACTS.FREE_USAGE.names),
  },
  // https://console.groq.com/docs/compound
  modelFields: ['compound_custom'],
  // https://console.groq.com/docs/rate-limits has the shared ones; recorded answers have `x-groq-region`.
  answerHeaders: ['x-groq-*'],
  refusals: 'undocumented',
  models: rowsOf(FACTS.MODELS),
};
