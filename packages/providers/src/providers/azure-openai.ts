import { azureChat, azureCompletions, azureEmbeddings } from '../dialects/azure-deployments.ts';
import { openaiChat } from '../dialects/openai-chat.ts';
import { openaiCompletions } from '../dialects/openai-completions.ts';
import { openaiEmbeddings } from '../dialects/openai-embeddings.ts';
import { openaiResponses } from '../dialects/openai-responses.ts';
import type { Provider } from '../provider.ts';

/**
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference; the `openai` SDK's azure.ts (header, deployments).
 * Each resource has its own origin, `https://NAME.openai.azure.com`, so the operator supplies it.
 */
export const azureOpenai: Provider = {
  id: 'azure-openai',
  baseUrl: undefined,
  credential: { header: 'api-key' },
  routes: [
    { path: '/openai/deployments/*/chat/completions', dialect: azureChat },
    { path: '/openai/deployments/*/completions', dialect: azureCompletions },
    { path: '/openai/deployments/*/embeddings', dialect: azureEmbeddings },
    { path: '/openai/responses', dialect: openaiResponses },
    { path: '/openai/v1/chat/completions', dialect: openaiChat },
    { path: '/openai/v1/responses', dialect: openaiResponses },
    { path: '/openai/v1/completions', dialect: openaiCompletions },
    { path: '/openai/v1/embeddings', dialect: openaiEmbeddings },
  ],
};
