import { compileGroup } from '../bounds/compile-group.ts';
import * as FACTS from '../facts/vendors/nebius.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider } from '../provider.ts';

/** Its rules where it follows OpenAI. */
const RULES: OpenaiRules = { ...FACTS.USAGE, input: OPEN_WEIGHTS_INPUT };

/**
 * https://docs.tokenfactory.nebius.com/api-reference: Token Factory, formerly AI Studio. No list has its prices, so they
 * are the operator's. The faster kind of a model has a name of its own (`…-fast`) and so a price of its own.
 */
export const nebius: Provider = {
  id: 'nebius',
  baseUrl: 'https://api.tokenfactory.nebius.com',
  credential: BEARER,
  routes: [
    {
      path: '/v1/chat/completions',
      dialect: openaiChat('nebius-chat', RULES, { fields: compileGroup(FACTS.CHAT_FIELDS) }),
    },
    { path: '/v1/completions', dialect: openaiCompletions('nebius-completions', RULES) },
    { path: '/v1/responses', dialect: openaiResponses('nebius-responses', RULES) },
    { path: '/v1/embeddings', dialect: openaiEmbeddings('nebius-embeddings', RULES) },
  ],
  free: FACTS.FREE.calls,
  slashedIds: FACTS.SLASHED_IDS.names,
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  refusals: 'undocumented',
};
