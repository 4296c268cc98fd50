import type { Dialect } from '../dialect.ts';
import { MODEL, NAMES } from './settings.ts';

/** The older Completions API (`openai` SDK, resources/completions): its bound stayed `max_tokens`. */
export const openaiCompletions: Dialect = {
  id: 'openai-completions',
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['stop'], names: NAMES.stop },
    { at: ['n'], names: NAMES.count },
    { at: ['seed'], names: NAMES.seed },
  ],
};

/** Mistral's fill-in-the-middle (`@mistralai/mistralai`, fimcompletionrequest). */
export const mistralFim: Dialect = {
  id: 'mistral-fim',
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['stop'], names: NAMES.stop },
    { at: ['random_seed'], names: NAMES.seed },
  ],
};
