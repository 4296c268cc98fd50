import type { Dialect } from '../dialect.ts';
import { MODEL, NAMES } from '../settings.ts';
import { openaiResponsesSpend, type ResponsesRules } from './responses.ts';
import { OPENAI_SERVER_TOOLS } from './responses-fields.ts';
import * as rules from './rules.ts';

/** Responses (`openai` SDK, resources/responses); without rules nothing may be spent on it. */
const responsesAs = (id: string, spend?: ResponsesRules): Dialect => ({
  id,
  settings: [MODEL, { at: ['max_output_tokens'], names: NAMES.outputBound }],
  ...(spend && { spend: openaiResponsesSpend(spend) }),
});

/** OpenAI and Azure refuse a `max_output_tokens` below 16. */
const MINIMUM = 16;

export const openaiResponses = responsesAs('openai-responses', {
  provider: rules.OPENAI_RULES,
  serverTools: OPENAI_SERVER_TOOLS,
  minimum: MINIMUM,
});

export const azureResponses = responsesAs('azure-responses', {
  provider: rules.AZURE_RULES,
  minimum: MINIMUM,
});

export const groqResponses = responsesAs('groq-responses', { provider: rules.GROQ_RULES, minimum: 1 });

export const xaiResponses = responsesAs('xai-responses', { provider: rules.XAI_RULES, minimum: 1 });

export const fireworksResponses = responsesAs('fireworks-responses', {
  provider: rules.FIREWORKS_RULES,
  minimum: 1,
});

export const openrouterResponses = responsesAs('openrouter-responses', {
  provider: rules.OPENROUTER_RULES,
  minimum: 1,
});

/** Perplexity's agents search as often as they like, and Mistral documents no usage: nothing bounds either. */
export const responsesUnbounded = responsesAs('responses-unbounded');
