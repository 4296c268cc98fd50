import { perplexityChat } from '../openai/chat-dialect.ts';
import { hostedEmbeddings } from '../openai/embeddings-dialect.ts';
import { responsesUnbounded } from '../openai/responses-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/**
 * https://docs.perplexity.ai/docs/sonar/openai-compatibility: `/v1/sonar` and `/v1/agent` are the canonical
 * names of `/chat/completions` and `/v1/responses`; the `@perplexity-ai/perplexity_ai` SDK's generated/api.ts.
 */
export const perplexity: Provider = {
  id: 'perplexity',
  baseUrl: 'https://api.perplexity.ai',
  credential: BEARER,
  routes: [
    { path: '/chat/completions', dialect: perplexityChat },
    { path: '/v1/sonar', dialect: perplexityChat },
    { path: '/v1/responses', dialect: responsesUnbounded },
    { path: '/v1/agent', dialect: responsesUnbounded },
    { path: '/v1/embeddings', dialect: hostedEmbeddings },
  ],
  free: [{ method: 'GET', path: '/v1/models' }],
};
