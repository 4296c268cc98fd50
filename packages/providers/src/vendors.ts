import type { Provider } from './provider.ts';
import { anthropic } from './vendors/anthropic.ts';
import { azureOpenai } from './vendors/azure-openai.ts';
import { cerebras } from './vendors/cerebras.ts';
import { cohere } from './vendors/cohere.ts';
import { deepseek } from './vendors/deepseek.ts';
import { fireworks } from './vendors/fireworks.ts';
import { google } from './vendors/google.ts';
import { groq } from './vendors/groq.ts';
import { mistral } from './vendors/mistral.ts';
import { nebius } from './vendors/nebius.ts';
import { openai } from './vendors/openai.ts';
import { openrouter } from './vendors/openrouter.ts';
import { perplexity } from './vendors/perplexity.ts';
import { together } from './vendors/together.ts';
import { xai } from './vendors/xai.ts';

/** Every provider known without an operator's file, by id. */
export const BUILT_IN_PROVIDERS: ReadonlyMap<string, Provider> = new Map(
  [
    openai,
    anthropic,
    google,
    cohere,
    groq,
    mistral,
    deepseek,
    xai,
    together,
    fireworks,
    openrouter,
    perplexity,
    cerebras,
    nebius,
    azureOpenai,
  ].map((provider) => [provider.id, provider]),
);
