import { anthropicMessages } from '../dialects/anthropic-messages.ts';
import { cohereRerank } from '../dialects/cohere.ts';
import { openaiChatMaxTokens } from '../dialects/openai-chat.ts';
import { openaiCompletions } from '../dialects/openai-completions.ts';
import { openaiEmbeddings } from '../dialects/openai-embeddings.ts';
import { openaiResponses } from '../dialects/openai-responses.ts';
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
    { path: '/inference/v1/chat/completions', dialect: openaiChatMaxTokens },
    { path: '/inference/v1/completions', dialect: openaiCompletions },
    { path: '/inference/v1/responses', dialect: openaiResponses },
    { path: '/inference/v1/messages', dialect: anthropicMessages },
    { path: '/inference/v1/embeddings', dialect: openaiEmbeddings },
    { path: '/inference/v1/rerank', dialect: cohereRerank },
  ],
};
