import type { Markers, Most } from '../fact.ts';

/** Tokens that OpenAI's own models add to a call: those that prime the answer, doubled and rounded up. */
export const ADDED: Most = {
  source: 'https://github.com/openai/openai-cookbook, How to count tokens with tiktoken',
  date: '2026-11-22',
  most: 256,
};

/**
 * Tokens that the templates of models with open weights add to a call. The longest known are Mistral Small's default system prompt and the
 * instructions of Llama and Qwen for tools, each under 700 tokens.
 */
export const ADDED_BY_TEMPLATES: Most = {
  source: 'the templates in the repositories of Mistral Small, Llama and Qwen',
  date: '2026-11-22',
  most: 2_048,
};

/** OpenAI's own models: 3 tokens a message, about 12 a tool in addition to its text, doubled and rounded up. */
export const MARKERS: Markers = {
  source: 'https://github.com/openai/openai-cookbook, How to count tokens with tiktoken',
  date: '2026-11-21',
  perMessage: 8,
  perTool: 32,
};

/** Markers of templates of models with open weights: some ten tokens around a message or a tool, several times over. */
export const MARKERS_OF_TEMPLATES: Markers = {
  source: 'the templates in the repositories of Mistral Small, Llama and Qwen',
  date: '2026-11-22',
  perMessage: 32,
  perTool: 64,
};
