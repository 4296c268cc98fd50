import { azureChat, azureCompletions, azureEmbeddings } from '../openai/azure-deployments.ts';
import { azureV1Chat } from '../openai/chat-dialect.ts';
import { azureV1Completions } from '../openai/completions-dialect.ts';
import { azureV1Embeddings } from '../openai/embeddings-dialect.ts';
import { azureResponses } from '../openai/responses-dialect.ts';
import type { Provider } from '../provider.ts';

/**
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference; the `openai` SDK's azure.ts (header, deployments).
 * Each resource has its own origin, `https://NAME.openai.azure.com`, so the operator supplies it.
 */
export const azureOpenai: Provider = {
  id: 'azure-openai',
  baseUrl: undefined,
  priceList: 'azure',
  credential: { header: 'api-key' },
  routes: [
    { path: '/openai/deployments/*/chat/completions', dialect: azureChat },
    { path: '/openai/deployments/*/completions', dialect: azureCompletions },
    { path: '/openai/deployments/*/embeddings', dialect: azureEmbeddings },
    { path: '/openai/responses', dialect: azureResponses },
    { path: '/openai/v1/chat/completions', dialect: azureV1Chat },
    { path: '/openai/v1/responses', dialect: azureResponses },
    { path: '/openai/v1/completions', dialect: azureV1Completions },
    { path: '/openai/v1/embeddings', dialect: azureV1Embeddings },
  ],
  free: [
    { method: 'GET', path: '/openai/v1/models' },
    { method: 'GET', path: '/openai/v1/models/*' },
    { method: 'GET', path: '/openai/v1/responses/*' },
    { method: 'GET', path: '/openai/v1/responses/*/input_items' },
    { method: 'POST', path: '/openai/v1/responses/*/cancel' },
    { method: 'DELETE', path: '/openai/v1/responses/*' },
    { method: 'GET', path: '/openai/responses/*' },
    { method: 'GET', path: '/openai/responses/*/input_items' },
    { method: 'POST', path: '/openai/responses/*/cancel' },
    { method: 'DELETE', path: '/openai/responses/*' },
  ],
};
