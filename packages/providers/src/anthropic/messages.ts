import { textPlaces } from '@presign/schema';
import { judge } from '../bounds/allow-list.ts';
import { apart, compileGroup } from '../bounds/compile-group.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import {
  boundInput,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  together,
  unboundedShare,
} from '../bounds/input-share.ts';
import { leastTokens, plainCharacters } from '../bounds/least-input.ts';
import { isCount, readOutputBound, writeOutputBound } from '../bounds/output-bound.ts';
import { type Dialect, MODEL, NAMES, NO_OUTPUT } from '../dialect.ts';
import * as FACTS from '../facts/anthropic.ts';
import type { CacheWrites } from '../facts/rates.ts';
import { isJsonObject, type JsonObject, textOf } from '../json.ts';
import type { Bounded, CallFacts, DialectSpend, ModelFacts } from '../spend.ts';
import { anthropicErrors } from './errors.ts';
import { JUDGED, outputConfig } from './fields.ts';
import { anthropicContent, anthropicTools, type BlockFacts, largestToolOf } from './input.ts';
import { readAnthropicAnswer, readAnthropicStream } from './usage.ts';

/** Token counting takes a message's input without the fields that shape its output. */
export const anthropicCountTokens: Dialect = {
  id: 'anthropic-count-tokens',
  errors: anthropicErrors,
  settings: [MODEL, ...NO_OUTPUT],
};

/** How messages are metered (`@anthropic-ai/sdk` 1.11, resources/messages and resources/beta/messages). */
const SPEND: DialectSpend = {
  unreadTexts: textPlaces(
    [
      ...['system', 'system[].text', 'messages[].content', 'messages[].content[].text'],
      ...['messages[].content[].content', 'messages[].content[].content[].text'],
    ],
    { onlyAscii: true },
  ),
  model: ({ model }) => (typeof model === 'string' ? model : undefined),
  streams: ({ stream }) => stream === true,
  boundBody,
  withOutputBound: (body, tokens) => writeOutputBound(body, 'max_tokens', tokens),
  atStandardPrice,
  readAnswer: readAnthropicAnswer,
  readStream: readAnthropicStream,
  isOwnError: (answer) => isJsonObject(answer) && answer.type === 'error' && isJsonObject(answer.error),
};

/** Messages (`@anthropic-ai/sdk`, resources/messages). The provider refuses unknown fields. */
export const anthropicMessages: Dialect = {
  id: 'anthropic-messages',
  errors: anthropicErrors,
  settings: [
    MODEL,
    { at: ['max_tokens'], names: NAMES.outputBound },
    { at: ['stop_sequences'], names: NAMES.stop, list: true },
  ],
  spend: SPEND,
};

/**
 * A cache write of Claude costs 1.25 times the input for five minutes and twice for an hour, in the tier of the call, at
 * Anthropic and wherever Claude is served.
 * https://platform.claude.com/docs/en/about-claude/pricing#prompt-caching;
 * https://openrouter.ai/docs/guides/best-practices/prompt-caching (both 2026-11)
 */
export const claudeWrites = (model: string): CacheWrites | undefined =>
  FACTS.CACHE_WRITES.matching.test(model.toLowerCase()) ? FACTS.CACHE_WRITES.times : undefined;

/** Every field of a message request that may pass. */
const MESSAGES_FIELDS = compileGroup(FACTS.MESSAGES_FIELDS, {
  ...JUDGED,
  messages: apart(messageShare),
  content: apart(anthropicContent),
  tools: apart(anthropicTools),
  output: apart(anthropicOutput),
  standardPrice: apart(atStandardPrice),
  format: apart(promptShare),
  outputConfig: outputConfig(promptShare),
});

const MESSAGE = compileGroup(FACTS.MESSAGE, { ...JUDGED, content: apart(anthropicContent) });

/** The deepest nesting that is accepted, because a body is walked by recursion. No request needs more. */
export const DEEPEST = 100;
export const FORMAT_PROMPT = FACTS.FORMAT_PROMPT.most;
/** Tokens left for the answer after a thinking budget, when the call has no bound of its own. */
const ANSWER = 4_096;

function boundBody(body: JsonObject, { bytes, facts }: CallFacts): Bounded {
  if (!nestedWithin(body, DEEPEST)) return { unbounded: { param: 'body', reason: 'is nested too deeply' } };
  const tools = anthropicTools(body.tools);
  const input = boundInput(
    together([
      { effect: judge(MESSAGES_FIELDS, body), extra: 0 },
      shareBelow('tools', tools.share),
      promptShare(body),
    ]),
    { bytes, facts },
    { fixed: FIXED, passes: tools.passes },
  );
  if ('unbounded' in input) return input;
  const output = anthropicOutput(body, facts);
  if ('unbounded' in output) return output;
  return {
    bound: {
      inputTokens: input.tokens,
      ...(tools.passes === 1 && { leastInput: leastInputOf(body) }),
      ...(!cachesForHour(body) && { isShortCache: true }),
      fees: tools.fees,
      // `max_tokens` may bound each turn of a server tool separately, so each turn is held.
      output: { ...output, times: tools.passes, coversReasoning: true },
    },
  };
}

/** Whether a body asks for a cache that lasts longer than five minutes, which is the default (`@anthropic-ai/sdk` 1.14, CacheControlEphemeral). */
export function cachesForHour(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(cachesForHour);
  if (!isJsonObject(value)) return false;
  const { cache_control: cache } = value;
  const isShort = !isJsonObject(cache) || [undefined, null, '5m'].includes(cache.ttl as string);
  return !isShort || Object.values(value).some(cachesForHour);
}

/** A system message may be left out of later turns (`clear_at`). */
function leastInputOf({ system, messages }: JsonObject): number {
  const turns = Array.isArray(messages) ? messages.filter(isJsonObject) : [];
  const said = turns.filter(({ role }) => role !== 'system');
  const characters = said.reduce(
    (sum, { content }) => sum + plainCharacters(content),
    plainCharacters(system),
  );
  return leastTokens(characters);
}

const { most: FIXED } = FACTS.MARKERS;

/** The prompt without its tools: system, messages, output format. */
function promptShare(body: JsonObject): Share {
  const { model, messages, system, tools, output_config, output_format } = body;
  let largest: number | undefined;
  const blockFacts: BlockFacts = {
    // Other providers speak this dialect too, with models whose images have no stated maximum.
    readsImages: FACTS.CLAUDE.matching.test(textOf(model)),
    largestTool: () => (largest ??= largestToolOf(tools, messages)),
  };
  const format = isJsonObject(output_config) ? (output_config.format ?? output_format) : output_format;
  return together([
    shareBelow('system', anthropicContent(system, blockFacts)),
    shareBelow(
      'messages',
      shareOfEach(messages ?? [], (message) => messageShare(message, blockFacts)),
    ),
    format === undefined || format === null
      ? { effect: 'harmless', extra: 0 }
      : together([rewrittenShare(format), { effect: 'harmless', extra: FORMAT_PROMPT }]),
  ]);
}

function messageShare(message: unknown, facts: BlockFacts): Share {
  if (!isJsonObject(message)) return unboundedShare('is not an object');
  return together([
    { effect: judge(MESSAGE, message), extra: 0 },
    shareBelow('content', anthropicContent(message.content, facts)),
  ]);
}

/** `max_tokens` covers thinking. A value of 0 writes the cache and gives no answer. */
export function anthropicOutput(body: JsonObject, facts: ModelFacts) {
  const { max_tokens, thinking } = body;
  if (max_tokens === 0) return { asked: 0, least: 0 };
  const budget = isJsonObject(thinking) && isCount(thinking.budget_tokens) ? thinking.budget_tokens : 0;
  const read = readOutputBound({ max_tokens }, facts, { minimum: budget + 1 });
  if ('unbounded' in read || (max_tokens !== undefined && max_tokens !== null)) return read;
  const asked = Math.min(Math.max(read.asked, budget + ANSWER), facts.maxOutput ?? Number.MAX_SAFE_INTEGER);
  return { asked, least: Math.min(asked, Math.max(read.least, budget + 1)) };
}

/**
 * Excludes priority capacity and fast mode. Only Claude models know `standard_only`. Other providers that speak this
 * dialect use the standard tier if it is omitted.
 */
function atStandardPrice({ service_tier: _tier, speed: _speed, ...body }: JsonObject): JsonObject {
  const isClaude = FACTS.CLAUDE.matching.test(textOf(body.model));
  return isClaude ? { ...body, service_tier: 'standard_only' } : body;
}
