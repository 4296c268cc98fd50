import { type AllowList, allow, judge } from '../bounds/allow-list.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import { countIn, readOutputBound, writeOutputBound } from '../bounds/output-bound.ts';
import { textOf } from '../bounds/read-count.ts';
import { isJsonObject, type JsonObject } from '../dialect.ts';
import type { Bound, ModelFacts, Reported, Spend, Unbounded } from '../spend.ts';
import { isErrorOf } from './errors.ts';
import { standardTier } from './fields.ts';
import { argumentsIn, boundInput, inputOf } from './input.ts';
import type { ProviderRules } from './rules.ts';
import { isUsageChunk, readChunks } from './stream.ts';
import { readChatUsage, reported } from './usage.ts';

/** One provider's chat completions. */
export type ChatRules = {
  readonly provider: ProviderRules;
  /** Every top-level field that may pass. */
  readonly fields: AllowList;
  /** The name of the output's bound that is sent. */
  readonly outputBound: 'max_completion_tokens' | 'max_tokens';
};

/** Spending on chat completions, as OpenAI and those who follow it offer them. */
export function openaiChatSpend(rules: ChatRules): Spend {
  const { provider, outputBound } = rules;
  const fields = allow(rules.fields, { service_tier: standardTier(provider.standardTier) });
  return {
    ...chunkSpend(provider, outputBound),
    bound: (body, { bytes, facts }) =>
      boundText(body, facts, provider, {
        input: () => {
          const items = Array.isArray(body.messages) ? body.messages : [];
          const rewritten = [body.tools, body.functions, body.response_format, ...items.flatMap(argumentsIn)];
          return boundInput(judge(fields, body), provider.input, facts, () =>
            inputOf(body, { bytes, input: provider.input }, { items, rewritten, tools: toolCount(body) }),
          );
        },
        times: countIn(body, 'n', MOST_CHOICES),
      }),
  };
}

/** What chat completions and completions have in common: names, streams, usage, errors. */
export function chunkSpend(provider: ProviderRules, outputBound: string): Omit<Spend, 'bound'> {
  const usageOf = (answer: JsonObject): Reported | undefined => {
    const groq = isJsonObject(answer.x_groq) ? answer.x_groq : {};
    // A whole answer's `x_groq.usage` tells of Groq's hardware caches; a chunk's is the usage.
    return reported(
      answer,
      readChatUsage(answer.usage, provider) ?? readChatUsage(groq.usage, provider),
      provider,
    );
  };
  return {
    model: modelIn,
    streams: (body) => body.stream === true,
    withOutputBound: (body, tokens) => writeOutputBound(body, outputBound, tokens),
    atStandardPrice: (body) => atTier(body, provider.standardTier),
    pricedHeaders: BETA_HEADERS,
    ...(provider.asksUsage && { askUsage, isUsageEvent: isUsageChunk }),
    readAnswer: (answer) => (isJsonObject(answer) ? usageOf(answer) : undefined),
    readStream: () => readChunks(provider.lastWord, usageOf),
    isOwnError: (answer) => isErrorOf(provider.errors, answer),
  };
}

/** The bound of a call that writes text: its input and its output, each bounded, and its model one that can be. */
export function boundText(
  body: JsonObject,
  facts: ModelFacts,
  provider: ProviderRules,
  call: {
    readonly input: () => ReturnType<typeof boundInput>;
    /** Choices to be written; undefined where the call's number of them is none. */
    readonly times: number | undefined;
    /** Lowest bound of the output that the API takes, if above 1. */
    readonly minimum?: number;
    /** Output without a bound, where the API has one of its own. */
    readonly omitted?: number;
  },
): { readonly bound: Bound } | { readonly unbounded: Unbounded } {
  if (provider.refusedModels?.test(textOf(body.model))) return { unbounded: REFUSED_MODEL };
  if (!nestedWithin(body, DEEPEST))
    return { unbounded: { param: 'body', reason: `is nested deeper than ${DEEPEST}` } };
  const bounded = call.input();
  if ('unbounded' in bounded) return bounded;
  const { times } = call;
  if (times === undefined)
    return { unbounded: { param: 'n', reason: `is not a whole number from 1 to ${MOST_CHOICES}` } };
  const thinking = thinkingBudget(body);
  if (thinking === undefined)
    return { unbounded: { param: 'reasoning', reason: 'has a budget that is no whole number' } };
  const minimum = Math.max(call.minimum ?? 1, thinking === 0 ? 1 : thinking + 1);
  const output = readOutputBound(body, facts, {
    minimum,
    ...(call.omitted !== undefined && { omitted: call.omitted }),
  });
  if ('unbounded' in output) return output;
  const coversReasoning = provider.coversReasoning(body.model);
  return { bound: { inputTokens: bounded.tokens, fees: {}, output: { ...output, times, coversReasoning } } };
}

/**
 * Betas may work, and be paid for, in other ways. OpenRouter hands those of `x-anthropic-beta` on
 * (https://openrouter.ai/docs/guides/routing/provider-selection).
 */
export const BETA_HEADERS: readonly string[] = ['openai-beta', 'anthropic-beta', 'x-anthropic-beta'];

/** The model that a body names. */
export const modelIn = ({ model }: JsonObject): string | undefined =>
  typeof model === 'string' && model !== '' ? model : undefined;

/** The body at the standard tier, said or left unsaid. */
export function atTier(body: JsonObject, tier: string | undefined): JsonObject {
  const { service_tier: _, ...rest } = body;
  return tier === undefined ? rest : { ...rest, service_tier: tier };
}

const REFUSED_MODEL: Unbounded = {
  param: 'model',
  reason: 'this model uses tools or others by itself, for fees that nothing in the call bounds',
};

/** Deeper than any schema or template goes, and far from what exhausts a stack. */
const DEEPEST = 100;

/** OpenAI allows as many choices (`openai` SDK, `n`). */
export const MOST_CHOICES = 128;

const toolCount = ({ tools, functions }: JsonObject): number =>
  (Array.isArray(tools) ? tools.length : 0) + (Array.isArray(functions) ? functions.length : 0);

function askUsage(body: JsonObject): JsonObject | undefined {
  if (body.stream !== true) return undefined;
  const options = isJsonObject(body.stream_options) ? body.stream_options : {};
  if (options.include_usage === true) return undefined;
  return { ...body, stream_options: { ...options, include_usage: true } };
}

/** Tokens of thinking that a call sets as a budget (Fireworks, OpenRouter); undefined where it is no number. */
function thinkingBudget({ thinking, reasoning, reasoning_effort }: JsonObject): number | undefined {
  const budgets = [
    isJsonObject(thinking) ? thinking.budget_tokens : undefined,
    isJsonObject(reasoning) ? reasoning.max_tokens : undefined,
    typeof reasoning_effort === 'number' ? reasoning_effort : undefined,
  ].filter((budget) => budget !== undefined && budget !== null);
  if (!budgets.every((budget) => Number.isSafeInteger(budget) && Number(budget) >= 0)) return undefined;
  return Math.max(0, ...budgets.map(Number));
}
