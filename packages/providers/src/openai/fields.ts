import { type AllowList, allow, type Effect, harmless, only, type Rule } from '../bounds/allow-list.ts';
import { AUDIO_REFUSED, judgeMessages, objectOf, ownTools, type Parts } from './messages.ts';
import type { InputRules } from './rules.ts';

/** The tier is set to the standard one before a call is bounded, so any other tier is refused. */
export const standardTier = (value: string | undefined): Rule =>
  only('is another price than the standard tier', ...(value === undefined ? [] : [value]));

const SERVER_SEARCH: Effect = { unbounded: 'searches have a fee, and their number has no bound' };

/**
 * Rejected prediction tokens are billed as output, and predictions cannot be combined with the bound of the output
 * (https://platform.openai.com/docs/guides/predicted-outputs, Limitations).
 */
const PREDICTION: Effect = { unbounded: 'rejected predictions are billed beyond the bound of the output' };

/** Fields that chat completions and completions share at every provider that follows OpenAI. */
export const SHARED: AllowList = allow(
  harmless(
    'model',
    'max_tokens',
    'max_completion_tokens',
    'max_output_tokens',
    'temperature',
    'top_p',
    'stop',
  ),
  harmless('seed', 'user', 'frequency_penalty', 'presence_penalty', 'logit_bias', 'logprobs', 'top_logprobs'),
  harmless('n', 'response_format'),
  {
    stream: only('is neither true nor false', true, false),
    stream_options: objectOf('include_usage', 'include_obfuscation'),
  },
);

/** Fields of chat completions: the shared ones, messages, the caller's own tools, and fields refused by name. */
export const chatFields = (input: InputRules, parts: Parts = new Map()): AllowList =>
  allow(
    SHARED,
    harmless('functions', 'function_call', 'tool_choice', 'parallel_tool_calls', 'reasoning_effort'),
    {
      messages: judgeMessages(parts, input),
      tools: ownTools('function', 'custom'),
      audio: AUDIO_REFUSED,
      modalities: textOnly,
      prediction: PREDICTION,
      web_search_options: SERVER_SEARCH,
    },
  );

/** Fields by which OpenAI stores, caches and moderates. They cost nothing beyond the input. */
export const CACHE_AND_RECORDS: AllowList = harmless(
  'metadata',
  'store',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
);

/** Sampling that hosts of open models offer. */
export const SAMPLING: AllowList = harmless(
  'top_k',
  'min_p',
  'typical_p',
  'repetition_penalty',
  'ignore_eos',
  'mirostat_lr',
  'mirostat_target',
);

/** Thinking that is asked for with a budget, in the spellings of hosts of open models. */
export const thinkingFields: AllowList = allow({
  thinking: objectOf('type', 'budget_tokens'),
  reasoning: objectOf('enabled', 'effort', 'max_tokens', 'exclude', 'summary'),
});

/** Text is priced as output; other kinds of output have rates of their own. */
function textOnly(value: unknown): Effect {
  const isText = Array.isArray(value) && value.every((kind) => kind === 'text');
  return isText ? 'harmless' : { unbounded: 'other output than text has rates of its own' };
}
