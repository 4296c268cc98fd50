import { anthropicMessages } from '../anthropic/messages.ts';
import { allow } from '../bounds/allow-list.ts';
import { compileGroup } from '../bounds/compile-group.ts';
import * as FACTS from '../facts/vendors/deepseek.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { thinkingFields } from '../openai/fields.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider, rowsOf } from '../provider.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

const chat = openaiChat('deepseek-chat', RULES, {
  outputBound: 'max_tokens',
  fields: allow(thinkingFields, compileGroup(FACTS.CHAT_FIELDS)),
});

/**
 * https://api-docs.deepseek.com: paths begin without a version; `/v1` is accepted as an alias, `/beta` holds
 * prefix and fill-in-the-middle completion, `/anthropic` follows Anthropic's API.
 */
export const deepseek: Provider = {
  id: 'deepseek',
  priceList: 'deepseek',
  baseUrl: 'https://api.deepseek.com',
  credential: BEARER,
  routes: [
    { path: '/chat/completions', dialect: chat },
    { path: '/v1/chat/completions', dialect: chat },
    { path: '/beta/chat/completions', dialect: chat },
    { path: '/beta/completions', dialect: openaiCompletions('deepseek-completions', RULES) },
    { path: '/anthropic/v1/messages', dialect: anthropicMessages },
  ],
  free: FACTS.FREE.calls,
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  answerHeaders: FACTS.ANSWER_HEADERS.names,
  refusals: 'undocumented',
  models: rowsOf(FACTS.MODELS),
  makerNames: ['deepseek'],
};
