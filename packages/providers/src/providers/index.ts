import type { Provider } from '../provider.ts';
import { anthropic } from './anthropic.ts';
import { azureOpenai } from './azure-openai.ts';
import { cohere } from './cohere.ts';
import { deepseek } from './deepseek.ts';
import { fireworks } from './fireworks.ts';
import { google } from './google.ts';
import { groq } from './groq.ts';
import { mistral } from './mistral.ts';
import { openai } from './openai.ts';
import { openrouter } from './openrouter.ts';
import { perplexity } from './perplexity.ts';
import { together } from './together.ts';
import { xai } from './xai.ts';

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
    azureOpenai,
  ].map((provider) => [provider.id, provider]),
);
