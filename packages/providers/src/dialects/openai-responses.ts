import type { Dialect } from '../dialect.ts';
import { MODEL, NAMES } from './settings.ts';

/** Responses (`openai` SDK, resources/responses). */
export const openaiResponses: Dialect = {
  id: 'openai-responses',
  settings: [MODEL, { at: ['max_output_tokens'], names: NAMES.outputBound }],
};
