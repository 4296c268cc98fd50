import { allow, harmless } from '../bounds/allow-list.ts';
import type { Dialect } from '../dialect.ts';
import { MODEL, NAMES } from '../settings.ts';
import { FIREWORKS_FIELDS, MISTRAL_FIELDS, OPENROUTER_FIELDS } from './chat-fields-dialect.ts';
import { COMPLETIONS, OPENAI_COMPLETIONS, openaiCompletionsSpend } from './completions.ts';
import { SAMPLING, SHARED } from './fields.ts';
import {
  AZURE_RULES,
  DEEPSEEK_RULES,
  FIREWORKS_RULES,
  MISTRAL_RULES,
  OPENAI_RULES,
  OPENROUTER_RULES,
  TOGETHER_RULES,
} from './rules.ts';

/** The older Completions API (`openai` SDK, resources/completions): its bound stayed `max_tokens`. */
const completionsAs = (id: string, spend: Dialect['spend']): Dialect => ({
  id,
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['stop'], names: NAMES.stop },
    { at: ['n'], names: NAMES.count },
    { at: ['seed'], names: NAMES.seed },
  ],
  ...(spend && { spend }),
});

/** OpenAI writes 16 tokens when no bound is given. */
const OPENAI_OMITTED = 16;

export const openaiCompletions = completionsAs(
  'openai-completions',
  openaiCompletionsSpend({
    provider: { ...OPENAI_RULES, standardTier: undefined },
    fields: allow(SHARED, OPENAI_COMPLETIONS),
    omitted: OPENAI_OMITTED,
  }),
);

export const azureV1Completions = completionsAs(
  'azure-v1-completions',
  openaiCompletionsSpend({
    provider: AZURE_RULES,
    fields: allow(SHARED, OPENAI_COMPLETIONS),
    omitted: OPENAI_OMITTED,
  }),
);

export const deepseekCompletions = completionsAs(
  'deepseek-completions',
  openaiCompletionsSpend({ provider: DEEPSEEK_RULES, fields: allow(SHARED, COMPLETIONS) }),
);

export const togetherCompletions = completionsAs(
  'together-completions',
  openaiCompletionsSpend({ provider: TOGETHER_RULES, fields: allow(SHARED, SAMPLING, COMPLETIONS) }),
);

export const fireworksCompletions = completionsAs(
  'fireworks-completions',
  openaiCompletionsSpend({
    provider: FIREWORKS_RULES,
    fields: allow(SHARED, SAMPLING, FIREWORKS_FIELDS, COMPLETIONS),
  }),
);

export const openrouterCompletions = completionsAs(
  'openrouter-completions',
  openaiCompletionsSpend({
    provider: OPENROUTER_RULES,
    fields: allow(SHARED, SAMPLING, OPENROUTER_FIELDS, COMPLETIONS),
  }),
);

/** Mistral's fill-in-the-middle (`@mistralai/mistralai`, fimcompletionrequest). */
export const mistralFim: Dialect = {
  id: 'mistral-fim',
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['stop'], names: NAMES.stop },
    { at: ['random_seed'], names: NAMES.seed },
  ],
  spend: openaiCompletionsSpend({
    provider: { ...MISTRAL_RULES, standardTier: undefined },
    fields: allow(SHARED, MISTRAL_FIELDS, harmless('min_tokens'), COMPLETIONS),
  }),
};
