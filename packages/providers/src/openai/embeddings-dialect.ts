import type { Dialect } from '../dialect.ts';
import { MODEL, NO_OUTPUT } from '../settings.ts';
import { openaiEmbeddingsSpend } from './embeddings.ts';
import * as rules from './rules.ts';

/** Embeddings (`openai` SDK, resources/embeddings). */
const embeddingsAs = (id: string, provider: rules.ProviderRules): Dialect => ({
  id,
  settings: [MODEL, ...NO_OUTPUT],
  spend: openaiEmbeddingsSpend(provider),
});

export const openaiEmbeddings = embeddingsAs('openai-embeddings', rules.OPENAI_RULES);

export const azureV1Embeddings = embeddingsAs('azure-v1-embeddings', rules.AZURE_RULES);

export const mistralEmbeddings = embeddingsAs('mistral-embeddings', rules.MISTRAL_RULES);

export const googleEmbeddings = embeddingsAs('gemini-openai-embeddings', rules.GEMINI_OPENAI_RULES);

/** Hosts of open models (Groq, Together, Fireworks, OpenRouter), whose tokenizers are of every kind. */
export const hostedEmbeddings = embeddingsAs('hosted-embeddings', rules.TOGETHER_RULES);
