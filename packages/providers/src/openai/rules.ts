import { textOf } from '../bounds/read-count.ts';
import type { ErrorShape } from './errors.ts';
import { openaiImageTokens } from './images.ts';

/** How a provider that follows OpenAI differs from the others, as far as money is concerned. */
export type ProviderRules = {
  readonly input: InputRules;
  /**
   * `service_tier` at the standard price: the value that says so, written into every call because an omitted
   * one means what the project is set to; undefined where omitting it does, so it is taken out.
   */
  readonly standardTier: string | undefined;
  /** It sends a stream's usage only when asked by `stream_options.include_usage`, and takes that field. */
  readonly asksUsage: boolean;
  /** What ends a stream that broke nowhere. */
  readonly lastWord: '[DONE]' | 'finish_reason';
  /** Whether the bound of the output holds for what the model thinks, too. */
  readonly coversReasoning: (model: unknown) => boolean;
  /** Models that search, run or fan out by themselves, for fees that the call does not bound. */
  readonly refusedModels?: RegExp;
  /** Reasoning is counted beside `completion_tokens`, not within. */
  readonly reasoningApart?: true;
  readonly errors: readonly ErrorShape[];
};

/** What a provider counts as input beyond the tokens that a body's bytes can make. */
export type InputRules = {
  /**
   * Tokens it puts in by itself: what marks a message off is less than the JSON around it, but templates open
   * with prompts of their own. `unknown`: too much or too unclear, so the whole context window is taken.
   */
  readonly perCall: number | 'unknown';
  readonly perMessage: number;
  readonly perTool: number;
  /** Some of its tokenizers normalise text, which can make it longer. */
  readonly normalises: boolean;
  /** Most tokens of an image, where published. */
  readonly imageTokens?: (model: unknown) => number | undefined;
};

const always = () => true;

/**
 * 3 tokens a message, 3 to prime the answer, about 12 a tool beside its text
 * (https://github.com/openai/openai-cookbook, How to count tokens with tiktoken): doubled and rounded up.
 */
const OPENAI_INPUT: InputRules = { perCall: 256, perMessage: 8, perTool: 32, normalises: false };

/**
 * Models with open weights: a template puts in what its author chose, the longest known being Mistral Small's
 * default system prompt and Llama's and Qwen's instructions for tools, each under 700 tokens.
 */
const OPEN_WEIGHTS_INPUT: InputRules = { perCall: 2_048, perMessage: 32, perTool: 64, normalises: true };

/** https://platform.openai.com/docs/api-reference and guides/reasoning: the bound includes reasoning. */
export const OPENAI_RULES: ProviderRules = {
  input: { ...OPENAI_INPUT, imageTokens: openaiImageTokens },
  standardTier: 'default',
  asksUsage: true,
  lastWord: '[DONE]',
  coversReasoning: always,
  refusedModels: /-search-(preview|api)|deep-research/,
  errors: ['error object'],
};

/** A deployment has a tier of its own, which its price is for; names of deployments say nothing of images. */
export const AZURE_RULES: ProviderRules = {
  ...OPENAI_RULES,
  input: OPENAI_INPUT,
  standardTier: undefined,
  errors: ['error object', 'message'],
};

/**
 * https://console.groq.com/docs/api-reference: `service_tier` defaults to `on_demand`; all generated tokens are
 * one total. Usage always comes, in a stream as `x_groq.usage`. Compound systems use tools for fees.
 */
export const GROQ_RULES: ProviderRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  coversReasoning: always,
  refusedModels: /compound/,
  errors: ['error object'],
};

/** `@mistralai/mistralai`, chatcompletionrequest and requestedservicetier; errors as of its models/errors. */
export const MISTRAL_RULES: ProviderRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: 'standard_only',
  asksUsage: false,
  lastWord: '[DONE]',
  coversReasoning: always,
  errors: ['error object', 'message', 'detail'],
};

/** https://api-docs.deepseek.com/api/create-chat-completion; `max_tokens` includes the chain of thought. */
export const DEEPSEEK_RULES: ProviderRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  coversReasoning: always,
  errors: ['error object'],
};

/**
 * https://docs.x.ai/docs/api-reference: reasoning is counted beside the completion, and nothing says that the
 * bound holds for it. It puts in prompts of its own of several hundred tokens.
 */
export const XAI_RULES: ProviderRules = {
  input: { ...OPEN_WEIGHTS_INPUT, perCall: 4_096 },
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  coversReasoning: (model) => /non-reasoning|^grok-2/.test(textOf(model)),
  refusedModels: /multi-agent/,
  reasoningApart: true,
  errors: ['error object', 'error text'],
};

/** https://docs.together.ai/reference; the last chunk has the usage, asked or not. */
export const TOGETHER_RULES: ProviderRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  coversReasoning: always,
  errors: ['error object'],
};

/** The `fireworks-ai` SDK, chat/completion_create_params: only `priority` differs from the standard tier. */
export const FIREWORKS_RULES: ProviderRules = { ...TOGETHER_RULES };

/**
 * https://openrouter.ai/docs/api-reference; usage always comes (`@openrouter/sdk`, chatstreamoptions). It passes
 * calls on to providers that differ, so nothing is taken for granted of reasoning; variants of a model that
 * search (`:online`) or pick dearer providers (`:nitro`, `:exacto`), and routers, have no one price.
 */
export const OPENROUTER_RULES: ProviderRules = {
  input: { ...OPEN_WEIGHTS_INPUT, perCall: 4_096 },
  standardTier: undefined,
  asksUsage: false,
  lastWord: '[DONE]',
  coversReasoning: () => false,
  refusedModels:
    /:(online|nitro|exacto)|^~?openrouter\/|^perplexity\/|search-(preview|api)|deep-research|multi-agent/,
  errors: ['error object'],
};

/**
 * https://docs.perplexity.ai/api-reference: every model searches, and what it reads counts as it may. The streams
 * end without [DONE]. A deep research call makes as many searches as it likes.
 */
export const PERPLEXITY_RULES: ProviderRules = {
  input: { ...OPEN_WEIGHTS_INPUT, perCall: 'unknown' },
  standardTier: undefined,
  asksUsage: false,
  lastWord: 'finish_reason',
  coversReasoning: always,
  refusedModels: /deep-research/,
  reasoningApart: true,
  errors: ['error object', 'detail'],
};

/**
 * https://ai.google.dev/gemini-api/docs/openai: both names of the bound become `maxOutputTokens`, which includes
 * thoughts; errors come in a list of one.
 */
export const GEMINI_OPENAI_RULES: ProviderRules = {
  input: OPEN_WEIGHTS_INPUT,
  standardTier: undefined,
  asksUsage: true,
  lastWord: '[DONE]',
  coversReasoning: always,
  errors: ['error object', 'error list'],
};
