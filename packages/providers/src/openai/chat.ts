import { textPlaces } from '@presign/schema';
import { type AllowList, allow, judge } from '../bounds/allow-list.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import { countIn, readOutputBound, writeOutputBound } from '../bounds/output-bound.ts';
import { type Dialect, MODEL, NAMES } from '../dialect.ts';
import { isJsonObject, type JsonObject, objectIn } from '../json.ts';
import type { Bounded, DialectSpend, ModelFacts } from '../spend.ts';
import { contentIn, costlyParts } from '../usage/chat-content.ts';
import { CHAT_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import { chatFields, thinkingBudget } from './fields.ts';
import { argumentsIn, boundPrompts, inputOf, plainTexts } from './input.ts';
import type { Parts } from './messages.ts';
import { isErrorOf, type OpenaiRules } from './rules.ts';
import { type ChunkUsage, isUsageChunk, readChunks } from './stream.ts';
import { chatParts, readChatUsage, stated } from './usage.ts';

/** How a vendor's chat completions differ from OpenAI's. */
export type ChatDifferences = {
  /**
   * The name of the output's bound. `max_completion_tokens` succeeds `max_tokens`, which reasoning models refuse
   * (`openai` SDK, resources/chat/completions); some APIs that follow OpenAI's know the old name only.
   */
  outputBound?: 'max_completion_tokens' | 'max_tokens';
  seed?: 'seed' | 'random_seed';
  /** Top-level fields beyond those that all vendors share. */
  fields?: AllowList;
  /** Content beyond text and images. */
  parts?: Parts;
};

/** Chat completions of a vendor. Without rules nothing is known of their cost, so nothing may be spent on them. */
export function openaiChat(
  id: string,
  rules: OpenaiRules | undefined,
  { outputBound = 'max_completion_tokens', seed = 'seed', fields, parts }: ChatDifferences = {},
): Dialect {
  return {
    id,
    settings: [
      MODEL,
      { at: [outputBound], names: NAMES.outputBound },
      { at: ['stop'], names: NAMES.stop },
      { at: ['n'], names: NAMES.count },
      { at: [seed], names: NAMES.seed },
    ],
    ...(rules && {
      spend: chatSpend(rules, allow(chatFields(rules, parts), fields ?? {}), outputBound),
    }),
  };
}

function chatSpend(rules: OpenaiRules, fields: AllowList, outputBound: string): DialectSpend {
  const { input } = rules;
  return {
    unreadTexts: textPlaces(CHAT_TEXTS, { onlyAscii: input.normalises }),
    ...chunkSpend(rules, outputBound),
    boundBody: (body, { bytes, facts, saved }) =>
      boundText(body, facts, {
        input: () => {
          const items = Array.isArray(body.messages) ? body.messages : [];
          const { tools, functions, response_format: format } = body;
          const rewritten = () => [tools, functions, format, ...items.flatMap(argumentsIn)];
          return boundPrompts(judge(fields, body), facts, (most) =>
            inputOf(
              body,
              { bytes, input, saved, most },
              { items, rewritten, tools: toolCount(body), texts: () => plainTexts(items) },
            ),
          );
        },
        times: countIn(body, 'n', MOST_CHOICES),
      }),
  };
}

/** Templates lay them out unchanged, so each byte bounds a token. Arguments of calls are written in another form. */
const CHAT_TEXTS = ['messages[].content', 'messages[].content[].text'];

/** The part of metering that chat completions and completions share: names, streams, usage, errors. */
export function chunkSpend(rules: OpenaiRules, outputBound: string): Omit<DialectSpend, 'boundBody'> {
  const usageOf: ChunkUsage = (answer, content, parts) => {
    // In a whole answer the vendor's own field may hold other counts, so `usage` comes first.
    const first = readChatUsage(answer.usage, rules);
    const own = first || rules.ownField === undefined ? undefined : objectIn(answer, rules.ownField).usage;
    const held = first ? answer.usage : own;
    const { model, usage } = stated(answer, first ?? readChatUsage(own, rules));
    const counts = unknownCounts(held, CHAT_COUNTS);
    const unknown = parts.length === 0 ? counts : [...counts, ...parts];
    return { model, usage, parts: chatParts(held, rules), content, unknown };
  };
  return {
    model: modelIn,
    streams: (body) => body.stream === true,
    withOutputBound: (body, tokens) => writeOutputBound(body, outputBound, tokens),
    atStandardPrice: (body) => atTier(body, rules.standardTier),
    ...(rules.asksUsage && { askUsage, isUsageEvent: isUsageChunk }),
    ...(rules.refusesAsking && { refusesAsking: rules.refusesAsking }),
    readAnswer: (answer) => {
      if (!isJsonObject(answer)) return undefined;
      return usageOf(answer, contentIn(answer), costlyParts(answer));
    },
    readStream: () => readChunks(rules, usageOf),
    echoes: ({ echo = false, echo_last: last = 0 }) => ![false, null].includes(echo as boolean) || last !== 0,
    isOwnError: (answer) => isErrorOf(rules.errors, answer),
  };
}

/** The bound of a call that writes text: its input and its output, each bounded. */
export function boundText(
  body: JsonObject,
  facts: ModelFacts,
  call: {
    readonly input: () => ReturnType<typeof boundPrompts>;
    /** Choices to be written; undefined if the call's number of them is malformed. */
    readonly times: number | undefined;
    /** Lowest bound of the output that the API takes, if above 1. */
    readonly minimum?: number;
    /** Output without a bound, where the API has one of its own. */
    readonly omitted?: number;
  },
): Bounded {
  if (!nestedWithin(body, DEEPEST))
    return { unbounded: { param: 'body', reason: `is nested deeper than ${DEEPEST}` } };
  const bounded = call.input();
  if ('unbounded' in bounded) return bounded;
  const { times } = call;
  if (times === undefined)
    return { unbounded: { param: 'n', reason: `is not a whole number from 1 to ${MOST_CHOICES}` } };
  const thinking = thinkingBudget(body);
  if (thinking === undefined)
    return { unbounded: { param: 'reasoning', reason: 'has a budget that is not a whole number' } };
  const minimum = Math.max(call.minimum ?? 1, thinking === 0 ? 1 : thinking + 1);
  const output = readOutputBound(body, facts, {
    minimum,
    ...(call.omitted !== undefined && { omitted: call.omitted }),
  });
  if ('unbounded' in output) return output;
  return {
    bound: { inputTokens: bounded.tokens, fees: {}, output: { ...output, times, coversReasoning: true } },
  };
}

/** The model that a body names. */
export const modelIn = ({ model }: JsonObject): string | undefined =>
  typeof model === 'string' && model !== '' ? model : undefined;

/** The body at the standard tier: written, or removed if `tier` is undefined. */
export function atTier(body: JsonObject, tier: string | undefined): JsonObject {
  if (body.service_tier === tier) return body;
  if (tier !== undefined) return { ...body, service_tier: tier };
  const { service_tier: _, ...rest } = body;
  return rest;
}

/** Deeper than any schema or template goes, and far from exhausting a stack. */
const DEEPEST = 100;

/** OpenAI allows as many choices (`openai` SDK, `n`). */
export const MOST_CHOICES = 128;

const toolCount = ({ tools, functions }: JsonObject): number =>
  (Array.isArray(tools) ? tools.length : 0) + (Array.isArray(functions) ? functions.length : 0);

function askUsage(body: JsonObject): JsonObject | undefined {
  if (body.stream !== true) return undefined;
  const options = objectIn(body, 'stream_options');
  if (options.include_usage === true) return undefined;
  return { ...body, stream_options: { ...options, include_usage: true } };
}
