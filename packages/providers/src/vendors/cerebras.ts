import { compileGroup } from '../bounds/compile-group.ts';
import * as FACTS from '../facts/vendors/cerebras.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider, rowsOf } from '../provider.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

const chat = openaiChat('cerebras-chat', RULES, {
  fields: compileGroup(FACTS.CHAT_FIELDS),
});

/** https://inference-docs.cerebras.ai; the `@cerebras/cerebras_cloud_sdk` SDK's resources/. */
export const cerebras: Provider = {
  id: 'cerebras',
  priceList: 'cerebras',
  baseUrl: 'https://api.cerebras.ai',
  credential: BEARER,
  routes: [
    { path: '/v1/chat/completions', dialect: chat },
    { path: '/v1/completions', dialect: openaiCompletions('cerebras-completions', RULES) },
  ],
  free: FACTS.FREE.calls,
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  refusals: 'undocumented',
  models: rowsOf(FACTS.MODELS),
};
