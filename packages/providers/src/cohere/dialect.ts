import type { Dialect } from '../dialect.ts';
import { MODEL, NAMES, NO_OUTPUT } from '../settings.ts';
import { cohereChatSpend } from './chat.ts';
import { cohereEmbedSpend, cohereRerankSpend } from './embed.ts';

/** Chat, v2 and v1 (`cohere-ai`, V2ChatRequest and ChatRequest): nucleus and top-k are `p` and `k`. */
export const cohereChat: Dialect = {
  id: 'cohere-chat',
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['p'], names: NAMES.topP },
    { at: ['k'], names: NAMES.topK },
    { at: ['stop_sequences'], names: NAMES.stop, list: true },
    { at: ['seed'], names: NAMES.seed },
  ],
  spend: cohereChatSpend,
};

/** Embed. Its `max_tokens` does not exist: nothing is generated. */
export const cohereEmbed: Dialect = {
  id: 'cohere-embed',
  settings: [MODEL, ...NO_OUTPUT],
  spend: cohereEmbedSpend,
};

/** Rerank, spoken by Together, Fireworks and OpenRouter too. */
export const cohereRerank: Dialect = {
  id: 'cohere-rerank',
  settings: [MODEL, ...NO_OUTPUT],
  spend: cohereRerankSpend,
};
