import { anthropicThinking } from '../anthropic/fields.ts';
import { anthropicOutput, DEEPEST, FORMAT_PROMPT } from '../anthropic/messages.ts';
import { judge, judgeObject } from '../bounds/allow-list.ts';
import { apart, compileGroup, compileWith } from '../bounds/compile-group.ts';
import { nestedWithin } from '../bounds/count-text.ts';
import {
  boundInput,
  NOTHING,
  rewrittenShare,
  type Share,
  shareBelow,
  shareOfEach,
  textShare,
  together,
  unboundedShare,
  unknownField,
  WHOLE_WINDOW,
} from '../bounds/input-share.ts';
import { type Dialect, NAMES } from '../dialect.ts';
import * as CLAUDE from '../facts/anthropic.ts';
import * as FACTS from '../facts/bedrock.ts';
import { countOf, isJsonObject, type JsonObject, objectIn, readObject } from '../json.ts';
import { type Bounded, type CallFacts, countsRead, type EventReader } from '../spend.ts';
import { hasText } from '../usage/content.ts';
import { CONVERSE_COUNTS } from '../usage/known.ts';
import { unknownCounts } from '../usage/known-counts.ts';
import type { Statement } from '../usage/record.ts';
import { awsErrors, BEDROCK_MODEL, bedrockModel, isAwsError, isClaude } from './call.ts';

/**
 * Converse and ConverseStream, which serve models of all makers (`@aws-sdk/client-bedrock-runtime` 3.1164, models_0).
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 */
export const bedrockConverse: Dialect = {
  id: 'bedrock-converse',
  errors: awsErrors,
  settings: [
    { at: ['inferenceConfig', 'maxTokens'], names: NAMES.outputBound },
    { at: ['inferenceConfig', 'temperature'], names: NAMES.temperature },
    { at: ['inferenceConfig', 'topP'], names: NAMES.topP },
    { at: ['inferenceConfig', 'stopSequences'], names: NAMES.stop, list: true },
  ],
  modelInPath: BEDROCK_MODEL,
  spend: {
    model: (_, path) => bedrockModel(path),
    streams: (_, path) => /\/converse-stream\/?$/i.test(path),
    boundBody,
    withOutputBound: (body, tokens) => ({
      ...body,
      inferenceConfig: { ...objectIn(body, 'inferenceConfig'), maxTokens: tokens },
    }),
    atStandardPrice: ({ serviceTier: _tier, performanceConfig: _performance, ...body }) => body,
    pricedHeaders: FACTS.PRICED_HEADERS.names,
    betasAt: ['additionalModelRequestFields', 'anthropic_beta'],
    readAnswer: (answer) => {
      if (!isJsonObject(answer)) return undefined;
      const { content } = objectIn(objectIn(answer, 'output'), 'message');
      return { ...stated(answer), content: hasText(content) ? 'written' : undefined };
    },
    readStream: readConverseStream,
    isOwnError: isAwsError,
  },
};

const FIELDS = compileGroup(FACTS.CONVERSE_FIELDS, {
  messages: apart(messagesShare),
  content: apart(contentShare),
  tools: apart(toolsShare),
  modelFields: judgeObject(compileGroup(FACTS.MODEL_FIELDS, { thinking: anthropicThinking })),
  inferenceConfig: judgeObject(compileGroup(FACTS.INFERENCE_CONFIG, { output: apart(anthropicOutput) })),
  outputConfig: judgeObject(compileGroup(FACTS.OUTPUT_CONFIG, { format: apart(formatShare) })),
});

function boundBody(body: JsonObject, { path, bytes, facts }: CallFacts): Bounded {
  if (!nestedWithin(body, DEEPEST)) return { unbounded: { param: 'body', reason: 'is nested too deeply' } };
  const claude = isClaude(bedrockModel(path));
  const input = boundInput(
    together([
      { effect: judge(FIELDS, body), extra: 0 },
      shareBelow('toolConfig', toolsShare(body.toolConfig)),
      shareBelow('system', contentShare(body.system, claude)),
      shareBelow('messages', messagesShare(body.messages, claude)),
      shareBelow('outputConfig', formatShare(body.outputConfig)),
    ]),
    { bytes, facts },
    { fixed: FIXED },
  );
  if ('unbounded' in input) return input;
  const { thinking } = objectIn(body, 'additionalModelRequestFields');
  const output = anthropicOutput(
    { max_tokens: objectIn(body, 'inferenceConfig').maxTokens, thinking },
    facts,
  );
  if ('unbounded' in output)
    return { unbounded: { ...output.unbounded, param: 'inferenceConfig.maxTokens' } };
  return {
    bound: { inputTokens: input.tokens, fees: {}, output: { ...output, times: 1, coversReasoning: true } },
  };
}

const { most: FIXED } = FACTS.MARKERS;

function messagesShare(messages: unknown, claude: boolean): Share {
  if (messages === undefined || messages === null) return NOTHING;
  return shareOfEach(messages, (message) => {
    if (!isJsonObject(message)) return unboundedShare('is not an object');
    const effect = judge(MESSAGE, message);
    return together([{ effect, extra: 0 }, shareBelow('content', contentShare(message.content, claude))]);
  });
}

const MESSAGE = compileGroup(FACTS.MESSAGE, { content: apart(contentShare) });

type BlockRule = (value: unknown, claude: boolean) => Share;

const asText: BlockRule = (value) => textShare(value);
const asWindow: BlockRule = () => WHOLE_WINDOW;

const cachePoint = judgeObject(compileGroup(FACTS.CACHE_POINT));

const BLOCKS = compileWith(FACTS.BLOCKS, ({ effect }) => (effect === 'harmless' ? asText : asWindow), {
  rewritten: rewrittenShare,
  toolResult: toolResultShare,
  image: (value, claude) => (claude ? imageShare(value) : WHOLE_WINDOW),
  cachePoint: (value) => ({ effect: cachePoint(value), extra: 0 }),
});

function contentShare(content: unknown, claude: boolean): Share {
  if (content === undefined || content === null) return NOTHING;
  if (!Array.isArray(content)) return unboundedShare('is not a list');
  return shareOfEach(content, (block) => {
    if (!isJsonObject(block)) return unboundedShare('is not an object');
    const parts = Object.entries(block).map(([kind, value]) =>
      shareBelow(
        kind,
        BLOCKS.get(kind)?.(value, claude) ?? unknownField('the cost of this kind of block is not known'),
      ),
    );
    return together(parts);
  });
}

function toolResultShare(value: unknown, claude: boolean): Share {
  if (!isJsonObject(value)) return unboundedShare('is not an object');
  const effect = judge(TOOL_RESULT, value);
  return together([{ effect, extra: 0 }, shareBelow('content', contentShare(value.content, claude))]);
}

const TOOL_RESULT = compileGroup(FACTS.TOOL_RESULT, { content: apart(contentShare) });

/** Claude's images have a maximum, wherever their bytes are. */
function imageShare(value: unknown): Share {
  const { bytes } = objectIn(isJsonObject(value) ? value : {}, 'source');
  return {
    effect: 'harmless',
    extra: CLAUDE.IMAGE_TOKENS.most - (typeof bytes === 'string' ? bytes.length : 0),
  };
}

function toolsShare(config: unknown): Share {
  if (config === undefined || config === null) return NOTHING;
  if (!isJsonObject(config)) return unboundedShare('is not an object');
  const { tools } = config;
  const shares = shareOfEach(tools ?? [], (tool) => {
    if (!isJsonObject(tool)) return unboundedShare('is not an object');
    return together([{ effect: judge(TOOLS, tool), extra: 0 }, rewrittenShare(tool.toolSpec)]);
  });
  const effect = judge(TOOL_CONFIG, config);
  return together([{ effect, extra: CLAUDE.TOOL_PROMPT.most }, shareBelow('tools', shares)]);
}

const TOOLS = compileGroup(FACTS.TOOLS, { rewritten: apart(rewrittenShare), cachePoint });
const TOOL_CONFIG = compileGroup(FACTS.TOOL_CONFIG, { tools: apart(toolsShare) });

/** Structured output adds a system prompt whose length is not documented. */
function formatShare(config: unknown): Share {
  return isJsonObject(config) && config.textFormat !== undefined && config.textFormat !== null
    ? together([rewrittenShare(config.textFormat), { effect: 'harmless', extra: FORMAT_PROMPT }])
    : NOTHING;
}

/**
 * A stream reports its usage in `metadata`, after `messageStop`. Exceptions arrive as events, too.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 */
function readConverseStream(): EventReader {
  let stopped = false;
  let failed = false;
  let written = false;
  let ended = false;
  return {
    event: (data, name) => {
      stopped ||= name === 'messageStop';
      failed ||= name?.endsWith('Exception') === true;
      if (name === 'metadata') {
        ended = true;
        return stated(readObject(data) ?? {});
      }
      if (written || (name !== 'contentBlockStart' && name !== 'contentBlockDelta')) return undefined;
      const { start, delta } = readObject(data) ?? {};
      written = hasText(start) || hasText(delta);
      return written ? { content: 'written' } : undefined;
    },
    isWhole: () => stopped && !failed && ended,
  };
}

/**
 * `inputTokens` exclude tokens read from and written to the cache
 * (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html). A guardrail has a price of its own, and its
 * trace shows that it ran.
 */
function stated({ usage, trace, serviceTier, performanceConfig }: JsonObject): Statement {
  const isListPrice =
    trace === undefined &&
    [undefined, 'default'].includes(fieldOf(serviceTier, 'type')) &&
    [undefined, 'standard'].includes(fieldOf(performanceConfig, 'latency'));
  if (!isJsonObject(usage) || !isListPrice) return { usage: 'unreadable' };
  if (typeof usage.inputTokens !== 'number' || typeof usage.outputTokens !== 'number')
    return { usage: 'unreadable' };
  const written = larger(usage, 'cacheWriteInputTokens', 'cacheWriteInputTokenCount');
  const read = larger(usage, 'cacheReadInputTokens', 'cacheReadInputTokenCount');
  const details: readonly unknown[] = Array.isArray(usage.cacheDetails) ? usage.cacheDetails : [];
  const sumOf = (list: readonly unknown[]) =>
    list.reduce<number>((sum, detail) => sum + countOf(detail, 'inputTokens'), 0);
  const all = sumOf(details);
  const long = sumOf(details.filter((detail) => fieldOf(detail, 'ttl') !== '5m'));
  const counts = countsRead({
    input_tokens: countOf(usage, 'inputTokens') + written + read,
    cache_write_tokens: written,
    cache_write_1h_tokens: long,
    cache_read_tokens: read,
    output_tokens: countOf(usage, 'outputTokens'),
    total_tokens: countOf(usage, 'totalTokens'),
  });
  const parts = { input_tokens: countOf(usage, 'inputTokens') + all + read, cache_write_tokens: all };
  return { usage: counts, parts, unknown: unknownCounts(usage, CONVERSE_COUNTS) };
}

/** The larger of two names of one count. */
const larger = (usage: JsonObject, ...[a, b]: readonly [string, string]): number =>
  Math.max(countOf(usage, a), countOf(usage, b));

const fieldOf = (value: unknown, field: string): string | undefined =>
  isJsonObject(value) && typeof value[field] === 'string' ? value[field] : undefined;
