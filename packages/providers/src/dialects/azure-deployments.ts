import type { Dialect } from '../dialect.ts';
import { openaiChat } from './openai-chat.ts';
import { openaiCompletions } from './openai-completions.ts';
import { openaiEmbeddings } from './openai-embeddings.ts';

/**
 * Azure's deployment endpoints speak OpenAI's dialects but are told the model by the path.
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference
 */
const onDeployment = (dialect: Dialect): Dialect => ({
  ...dialect,
  id: `azure-${dialect.id}`,
  settings: dialect.settings.filter(({ at }) => at?.[0] !== 'model'),
  modelInPath: { collections: ['deployments'], repeatedAt: [['model']], withMethod: false },
});

export const azureChat = onDeployment(openaiChat);
export const azureCompletions = onDeployment(openaiCompletions);
export const azureEmbeddings = onDeployment(openaiEmbeddings);
