import { allow, harmless } from '../bounds/allow-list.ts';
import { openaiChat } from '../openai/chat.ts';
import { openaiCompletions } from '../openai/completions.ts';
import { openaiEmbeddings } from '../openai/embeddings.ts';
import { openaiResponses } from '../openai/responses.ts';
import { OPEN_WEIGHTS_ADDED, OPEN_WEIGHTS_INPUT, type OpenaiRules } from '../openai/rules.ts';
import { BEARER, type Provider } from '../provider.ts';

/**
 * https://docs.tokenfactory.nebius.com/api-reference/inference/create-chat-completion: `service_tier` is `auto` if it is
 * omitted; `stream_options.include_usage` brings the usage with the last chunk. Its OpenAPI document is FastAPI's, whose
 * errors are in `detail`.
 */
const RULES: OpenaiRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  errors: ['error object', 'detail'],
};

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
      dialect: openaiChat('nebius-chat', RULES, { fields: allow(harmless('store', 'top_k')) }),
    },
    { path: '/v1/completions', dialect: openaiCompletions('nebius-completions', RULES) },
    { path: '/v1/responses', dialect: openaiResponses('nebius-responses', RULES) },
    { path: '/v1/embeddings', dialect: openaiEmbeddings('nebius-embeddings', RULES) },
  ],
  free: [
    { method: 'GET', path: '/v1/models' },
    { method: 'GET', path: '/v1/models/*' },
  ],
  // `meta-llama/…` (https://docs.studio.nebius.com): OpenAI's SDKs encode the slash.
  slashedIds: ['/v1/models/*'],
  rules: { addedInput: OPEN_WEIGHTS_ADDED },
  refusals: 'undocumented',
};
