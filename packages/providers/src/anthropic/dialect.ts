import type { Dialect } from '../dialect.ts';
import { MODEL, NAMES, NO_OUTPUT } from '../settings.ts';
import { anthropicMessagesSpend } from './messages.ts';

/** Messages (`@anthropic-ai/sdk`, resources/messages): unknown fields are refused by the provider. */
export const anthropicMessages: Dialect = {
  id: 'anthropic-messages',
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['stop_sequences'], names: NAMES.stop, list: true },
  ],
  spend: anthropicMessagesSpend,
};

/** Token counting takes a message's input without what shapes its output. */
export const anthropicCountTokens: Dialect = {
  id: 'anthropic-count-tokens',
  settings: [MODEL, ...NO_OUTPUT],
};
