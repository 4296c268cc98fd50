import type { Dialect } from '../dialect.ts';
import { decoded } from '../path.ts';
import { azureV1Chat } from './chat-dialect.ts';
import { azureV1Completions } from './completions-dialect.ts';
import { azureV1Embeddings } from './embeddings-dialect.ts';

/**
 * Azure's deployment endpoints speak OpenAI's dialects but are told the model by the path.
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference
 */
const onDeployment = (id: string, dialect: Dialect): Dialect => ({
  ...dialect,
  id,
  settings: dialect.settings.filter(({ at }) => at?.[0] !== 'model'),
  modelInPath: { collections: ['deployments'], repeatedAt: [['model']], withMethod: false },
  ...(dialect.spend && { spend: { ...dialect.spend, model: (_, path) => deploymentIn(path) } }),
});

/** What is paid for is the deployment: its price is the operator's to give, under its name. */
const deploymentIn = (path: string): string | undefined =>
  decoded(/\/deployments\/([^/;]+)/i.exec(path)?.[1] ?? '') || undefined;

export const azureChat = onDeployment('azure-openai-chat', azureV1Chat);
export const azureCompletions = onDeployment('azure-openai-completions', azureV1Completions);
export const azureEmbeddings = onDeployment('azure-openai-embeddings', azureV1Embeddings);
