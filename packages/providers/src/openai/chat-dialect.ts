import { type AllowList, allow, harmless } from '../bounds/allow-list.ts';
import type { Dialect } from '../dialect.ts';
import { MODEL, NAMES } from '../settings.ts';
import { openaiChatSpend } from './chat.ts';
import * as own from './chat-fields-dialect.ts';
import { CACHE_AND_RECORDS, chatFields, SAMPLING } from './fields.ts';
import { type Parts, partOf } from './messages.ts';
import * as rules from './rules.ts';

type Differences = {
  outputBound?: 'max_completion_tokens' | 'max_tokens';
  seed?: 'seed' | 'random_seed';
  /** What is known of its prices; nothing may be spent where this is absent. */
  provider?: rules.ProviderRules;
  /** Top-level fields beside those all share. */
  fields?: AllowList;
  /** Content beside text and images. */
  parts?: Parts;
};

/**
 * Chat Completions. `max_completion_tokens` succeeds `max_tokens`, which reasoning models refuse
 * (`openai` SDK, resources/chat/completions); of the APIs that follow OpenAI's, some know the old name only.
 */
function openaiChatWith(id: string, { outputBound, seed, provider, fields, parts }: Differences): Dialect {
  const bound = outputBound ?? 'max_completion_tokens';
  return {
    id,
    settings: [
      MODEL,
      { at: [bound], names: NAMES.outputBound },
      { at: ['stop'], names: NAMES.stop },
      { at: ['n'], names: NAMES.count },
      { at: [seed ?? 'seed'], names: NAMES.seed },
    ],
    ...(provider && {
      spend: openaiChatSpend({
        provider,
        fields: allow(chatFields(provider.input, parts), fields ?? {}),
        outputBound: bound,
      }),
    }),
  };
}

const OPENAI_FIELDS = allow(CACHE_AND_RECORDS, harmless('verbosity'));

/** Pages as text and pictures, or frames: at most what the window holds. */
const WINDOW_PARTS = {
  file: ['file', 'whole window'],
  video_url: ['video_url', 'whole window'],
} as const;

export const openaiChat = openaiChatWith('openai-chat', {
  provider: rules.OPENAI_RULES,
  fields: OPENAI_FIELDS,
  parts: new Map([WINDOW_PARTS.file]),
});

export const azureV1Chat = openaiChatWith('azure-v1-chat', {
  provider: rules.AZURE_RULES,
  fields: allow(OPENAI_FIELDS, harmless('user_security_context')),
  parts: new Map([WINDOW_PARTS.file]),
});

export const groqChat = openaiChatWith('groq-chat', { provider: rules.GROQ_RULES, fields: own.GROQ_FIELDS });

export const xaiChat = openaiChatWith('xai-chat', { provider: rules.XAI_RULES, fields: own.XAI_FIELDS });

export const openrouterChat = openaiChatWith('openrouter-chat', {
  provider: rules.OPENROUTER_RULES,
  fields: allow(SAMPLING, own.OPENROUTER_FIELDS),
});

export const deepseekChat = openaiChatWith('deepseek-chat', {
  outputBound: 'max_tokens',
  provider: rules.DEEPSEEK_RULES,
  fields: own.DEEPSEEK_FIELDS,
});

export const togetherChat = openaiChatWith('together-chat', {
  outputBound: 'max_tokens',
  provider: rules.TOGETHER_RULES,
  fields: allow(SAMPLING, own.TOGETHER_FIELDS),
  parts: new Map([WINDOW_PARTS.video_url]),
});

export const fireworksChat = openaiChatWith('fireworks-chat', {
  outputBound: 'max_tokens',
  provider: rules.FIREWORKS_RULES,
  fields: allow(SAMPLING, own.FIREWORKS_FIELDS),
});

export const perplexityChat = openaiChatWith('perplexity-chat', {
  outputBound: 'max_tokens',
  provider: rules.PERPLEXITY_RULES,
  fields: own.PERPLEXITY_FIELDS,
});

/** As spoken where `max_tokens` is the bound's name, and no more is known. */
export const openaiChatMaxTokens = openaiChatWith('openai-chat-max-tokens', { outputBound: 'max_tokens' });

/** As spoken by Mistral, whose seed is `random_seed` (`@mistralai/mistralai`, chatcompletionrequest). */
export const mistralChat = openaiChatWith('mistral-chat', {
  outputBound: 'max_tokens',
  seed: 'random_seed',
  provider: rules.MISTRAL_RULES,
  fields: own.MISTRAL_FIELDS,
  parts: new Map([
    ['thinking', 'whole window'],
    ['reference', partOf(harmless('reference_ids'))],
  ]),
});

/** An agent brings its model and tools, which the call does not name: nothing of its cost is known. */
export const mistralAgents = openaiChatWith('mistral-agents', {
  outputBound: 'max_tokens',
  seed: 'random_seed',
});

/**
 * As spoken by Gemini: a protocol-buffer API behind, so camelCase names are read too. They are unknown fields
 * under a spend limit.
 * https://ai.google.dev/api/compatibility
 */
export const geminiOpenaiChat: Dialect = {
  ...openaiChatWith('gemini-openai-chat', { provider: rules.GEMINI_OPENAI_RULES }),
  protoJson: { callersOwn: ['responseFormat', 'metadata'] },
};
