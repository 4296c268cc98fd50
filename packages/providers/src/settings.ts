import type { Setting } from './dialect.ts';

/** Names in use for a setting, whatever the API: any of them may be given in `config`. */
export const NAMES = {
  model: ['model'],
  outputBound: ['max_tokens', 'max_completion_tokens', 'max_output_tokens'],
  temperature: ['temperature'],
  topP: ['top_p'],
  topK: ['top_k'],
  stop: ['stop', 'stop_sequences'],
  count: ['n', 'candidate_count'],
  seed: ['seed', 'random_seed'],
  presencePenalty: ['presence_penalty'],
  frequencyPenalty: ['frequency_penalty'],
} as const;

/**
 * The model, where the body names it.
 * `models` (OpenRouter, Perplexity) and `fallbacks` (Anthropic) name others to be used in its stead.
 * https://openrouter.ai/docs/features/model-routing
 */
export const MODEL: Setting = { at: ['model'], names: NAMES.model, rivals: ['models', 'fallbacks'] };

/** For endpoints that write no text: what shapes output is left out. */
export const NO_OUTPUT: readonly Setting[] = [
  NAMES.outputBound,
  NAMES.temperature,
  NAMES.topP,
  NAMES.topK,
  NAMES.stop,
  NAMES.count,
  NAMES.seed,
  NAMES.presencePenalty,
  NAMES.frequencyPenalty,
].map((names) => ({ at: undefined, names }));
