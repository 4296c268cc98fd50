import type { Dialect } from '../dialect.ts';
import { MODEL, NAMES } from './settings.ts';

type Differences = {
  outputBound?: 'max_completion_tokens' | 'max_tokens';
  seed?: 'seed' | 'random_seed';
};

/**
 * Chat Completions. `max_completion_tokens` succeeds `max_tokens`, which reasoning models refuse
 * (`openai` SDK, resources/chat/completions); of the APIs that follow OpenAI's, some know the old name only.
 */
function openaiChatWith(id: string, { outputBound, seed }: Differences): Dialect {
  return {
    id,
    settings: [
      MODEL,
      { at: [outputBound ?? 'max_completion_tokens'], names: NAMES.outputBound },
      { at: ['stop'], names: NAMES.stop },
      { at: ['n'], names: NAMES.count },
      { at: [seed ?? 'seed'], names: NAMES.seed },
    ],
  };
}

export const openaiChat = openaiChatWith('openai-chat', {});

/** As spoken where `max_tokens` is the bound's name. */
export const openaiChatMaxTokens = openaiChatWith('openai-chat-max-tokens', { outputBound: 'max_tokens' });

/** As spoken by Mistral, whose seed is `random_seed` (`@mistralai/mistralai`, chatcompletionrequest). */
export const mistralChat = openaiChatWith('mistral-chat', { outputBound: 'max_tokens', seed: 'random_seed' });

/**
 * As spoken by Gemini: a protocol-buffer API behind, so camelCase names are read too.
 * https://ai.google.dev/api/compatibility
 */
export const geminiOpenaiChat: Dialect = {
  ...openaiChatWith('gemini-openai-chat', {}),
  protoJson: { callersOwn: ['responseFormat', 'metadata'] },
};
