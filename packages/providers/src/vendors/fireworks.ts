import { anthropicMessages } from '../anthropic/dialect.ts';
import { cohereRerank } from '../cohere/dialect.ts';
import { fireworksChat } from '../openai/chat-dialect.ts';
import { fireworksCompletions } from '../openai/completions-dialect.ts';
import { hostedEmbeddings } from '../openai/embeddings-dialect.ts';
import { fireworksResponses } from '../openai/responses-dialect.ts';
import { BEARER, type Provider } from '../provider.ts';

/**
 * https://docs.fireworks.ai/guides/querying-text-models; the `fireworks-ai` Python SDK, whose chat completions
 * take `max_tokens` and refuse its alias `max_completion_tokens` beside it.
 */
export const fireworks: Provider = {
  id: 'fireworks',
  baseUrl: 'https://api.fireworks.ai',
  credential: BEARER,
  routes: [
    { path: '/inference/v1/chat/completions', dialect: fireworksChat },
    { path: '/inference/v1/completions', dialect: fireworksCompletions },
    { path: '/inference/v1/responses', dialect: fireworksResponses },
    { path: '/inference/v1/messages', dialect: anthropicMessages },
    { path: '/inference/v1/embeddings', dialect: hostedEmbeddings },
    { path: '/inference/v1/rerank', dialect: cohereRerank },
  ],
  free: [
    { method: 'GET', path: '/inference/v1/models' },
    { method: 'GET', path: '/inference/v1/models/*' },
  ],
};
